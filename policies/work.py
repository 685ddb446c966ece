"""How much there is to judge in a pod, counted before anything is judged.

What an evaluation costs grows with what a pod says to be judged: containers, resource names, tolerations, and for each required term its
expressions with the nodeSelector's, on every platform. So these are counted, whatever bytes they have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from policies.extract import ORDINARY
from policies.pod import REQUIRED, Raw

MOST = 180
"""Items of the largest pod that is judged. The largest that were seen have thirty containers, or ten terms of five expressions; a list of
700 instance types is 140."""
VALUES = 5
"""values of an expression, or claims, that cost as much as one item"""
NAME = 4
"""items that a resource name is where it stands first: each is judged on every platform, and beside every other"""


def items(pod: Raw) -> int:
    """Of a pod, whatever shape it has. Adding stops where it is too much anyway."""
    total = 0
    for count in _counts(pod):
        total += count
        if total > MOST:
            break
    return total


def _counts(pod: Raw) -> Iterator[int]:
    spec = _map(pod.get("spec"))
    yield len(_list(spec.get("tolerations"))) + len(_list(spec.get("resourceClaims"))) // VALUES
    names = set(ORDINARY)
    for field in ("initContainers", "containers"):
        for container in _list(spec.get(field)):
            resources = _map(_map(container).get("resources"))
            found = {*_map(resources.get("limits")), *_map(resources.get("requests"))}
            yield 1 + len(found) + NAME * len(found - names)
            names |= found
    selector = len(_map(spec.get("nodeSelector")))
    yield selector
    node_affinity = spec
    for step in ("affinity", "nodeAffinity"):
        node_affinity = _map(node_affinity.get(step))
    for term in _list(_map(node_affinity.get(REQUIRED)).get("nodeSelectorTerms")):
        yield 1 + selector + _expressions(term)
    for preferred in _list(node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution")):
        yield 1 + _expressions(_map(preferred).get("preference"))


def _expressions(term: Any) -> int:
    found = [*_list(_map(term).get("matchExpressions")), *_list(_map(term).get("matchFields"))]
    return sum(1 + len(_list(_map(e).get("values"))) // VALUES for e in found)


def _map(value: Any) -> Raw:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
