"""The amount of work in judging a pod, counted before anything is judged.

The cost of an evaluation grows with the parts of a pod that are judged: containers, resource names,
tolerations, and for each required term its expressions with the nodeSelector's, on every platform. So these
are counted, whatever bytes they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kube.pod import PREFERRED, REQUIRED
from kube.tree import Raw, TreePatch
from policies.pods.projection import ORDINARY
from policies.verdict import Edit

MOST_READ = 64 * 2**10
"""The most bytes of what a decision reads of a pod: usually 1 KiB, 15 with long lists of instance types."""
MOST = 180
"""Items of the largest pod that is judged. The largest pods observed have thirty containers, or ten terms
of five expressions; a list of 700 instance types is 140."""
VALUES = 5
"""The number of values of an expression, or of claims, that cost as much as one item."""
NAME = 4
"""The items that a resource name counts for at its first occurrence: each is judged on every platform, and
together with every other. cpu, memory and storage are none."""
_SHORTEST = 16
"""Characters that an item of node affinity takes at least as Python writes it: ``{'key': 'k', 'operator': 'Exists'}``, five values,
``{'matchExpressions': []}``."""
CONTAINER = 2
"""The items of a container, with its ordinary resources."""


def items(pod: Raw) -> int:
    """Return the items of a pod, whatever shape it has. Adding stops once the total is over ``MOST``."""
    spec = _map(pod.get("spec"))
    selector = len(_map(spec.get("nodeSelector")))
    total = selector + len(_list(spec.get("tolerations"))) + len(_list(spec.get("resourceClaims"))) // VALUES
    names: set[str] = set()
    for container in (*_list(spec.get("initContainers")), *_list(spec.get("containers"))):
        total += CONTAINER
        if resources := _map(_map(container).get("resources")):
            named = {*_map(resources.get("limits")), *_map(resources.get("requests"))}.difference(ORDINARY)
            total += len(named) + NAME * len(named - names)
            names |= named
        if total > MOST:
            return total
    if "affinity" not in spec:
        return total
    node_affinity = _map(_map(spec["affinity"]).get("nodeAffinity"))
    for term in _list(_map(node_affinity.get(REQUIRED)).get("nodeSelectorTerms")):
        total += 1 + selector + _expressions(term)
        if total > MOST:
            return total
    for preferred in _list(node_affinity.get(PREFERRED)):
        total += 1 + _expressions(_map(preferred).get("preference"))
        if total > MOST:
            return total
    return total


def fits_after(pod: Raw, edits: Sequence[Edit], before: int) -> bool:
    """Return whether a pod of ``before`` items has at most ``MOST`` with what policies add to it: as it is judged when the call comes
    again, and at /validate."""
    spec = _map(pod.get("spec"))
    of_term = 1 + len(_map(spec.get("nodeSelector")))
    if before + sum(of_term * (1 + len(str(edit.value)) // _SHORTEST) if "affinity" in edit.path else 1 + NAME for edit in edits) <= MOST:
        return True
    patch = TreePatch(pod)
    for edit in edits:
        patch.apply(edit)
    return items(patch.tree) <= MOST


def _expressions(term: Any) -> int:
    found = [*_list(_map(term).get("matchExpressions")), *_list(_map(term).get("matchFields"))]
    return sum(1 + len(_list(_map(e).get("values"))) // VALUES for e in found)


def _map(value: Any) -> Raw:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
