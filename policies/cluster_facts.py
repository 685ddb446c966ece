"""What is known of the cluster besides policies: namespaces, nodes, NodePools, DRA classes and claims, as plain maps.

``ClusterFacts.from_objects`` takes Kubernetes objects as dicts (from files now, from a watch later), so that every
rule that needs facts is tested purely.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from policies import duration

Claim = tuple[tuple[str, int], ...]
"""((device class, count), ...); count 0 stands for 'all', which can't be counted"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """name -> labels"""
    nodes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """name -> labels"""
    nodepool_grace: Mapping[str, int | None] = field(default_factory=dict)
    """NodePool -> terminationGracePeriod in seconds, None where it has none"""
    device_classes: Mapping[str, str] = field(default_factory=dict)
    """DeviceClass -> driver, "" where its selectors name none"""
    claims: Mapping[tuple[str, str, str], Claim] = field(default_factory=dict)
    """(ResourceClaim or ResourceClaimTemplate, namespace, name) -> what it asks for"""

    @classmethod
    def from_objects(cls, objects: Iterable[Mapping[str, Any]]) -> ClusterFacts:
        """Facts from dumped objects. Other kinds are ignored; an object that lacks what is read counts as empty."""
        facts = cls()
        readers: dict[str, Callable[[Mapping[str, Any], ClusterFacts], None]] = {
            "Namespace": _namespace,
            "Node": _node,
            "NodePool": _nodepool,
            "DeviceClass": _device_class,
            "ResourceClaim": _claim,
            "ResourceClaimTemplate": _claim,
        }
        for thing in objects:
            reader = readers.get(str(thing.get("kind")))
            if reader is not None:
                reader(thing, facts)
        return facts


KINDS = ("Namespace", "Node", "NodePool", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate")


def _map(thing: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        thing = thing.get(key) if isinstance(thing, dict) else None
    return thing if isinstance(thing, dict) else {}


def _name(thing: Mapping[str, Any]) -> str:
    return str(_map(thing, "metadata").get("name", ""))


def _labels(thing: Mapping[str, Any]) -> dict[str, str]:
    return {str(k): str(v) for k, v in _map(thing, "metadata", "labels").items()}


def _namespace(thing: Mapping[str, Any], facts: ClusterFacts) -> None:
    assert isinstance(facts.namespaces, dict)
    facts.namespaces[_name(thing)] = _labels(thing)


def _node(thing: Mapping[str, Any], facts: ClusterFacts) -> None:
    assert isinstance(facts.nodes, dict)
    facts.nodes[_name(thing)] = _labels(thing)


def _nodepool(thing: Mapping[str, Any], facts: ClusterFacts) -> None:
    assert isinstance(facts.nodepool_grace, dict)
    template = _map(thing, "spec", "template", "spec")
    facts.nodepool_grace[_name(thing)] = duration.read(template.get("terminationGracePeriod"))


_DRIVER = re.compile(r"""device\.driver\s*==\s*["']([^"']+)["']""")
"""The CEL that every published DeviceClass uses to name its driver (k8s.io/api/resource/v1 DeviceSelector)."""


def _device_class(thing: Mapping[str, Any], facts: ClusterFacts) -> None:
    assert isinstance(facts.device_classes, dict)
    selectors = _map(thing, "spec").get("selectors") or []
    expressions = [str(_map(s, "cel").get("expression", "")) for s in selectors if isinstance(s, dict)]
    drivers = [m.group(1) for e in expressions if (m := _DRIVER.search(e))]
    facts.device_classes[_name(thing)] = drivers[0] if drivers else ""


def _claim(thing: Mapping[str, Any], facts: ClusterFacts) -> None:
    assert isinstance(facts.claims, dict)
    kind = str(thing["kind"])
    spec = _map(thing, "spec", "spec") if kind == "ResourceClaimTemplate" else _map(thing, "spec")
    requests = _map(spec, "devices").get("requests") or []
    asked = tuple(_request(r) for r in requests if isinstance(r, dict))
    namespace = str(_map(thing, "metadata").get("namespace", "default"))
    facts.claims[kind, namespace, _name(thing)] = asked


def _request(request: Mapping[str, Any]) -> tuple[str, int]:
    """v1 has ``exactly``; v1beta1 has the fields in place; ``firstAvailable`` counts by its first choice."""
    choices = request.get("firstAvailable")
    exact = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else _map(request, "exactly") or request
    count = exact.get("count", 1)
    every = exact.get("allocationMode") == "All" or not isinstance(count, int)
    return str(exact.get("deviceClassName", "")), 0 if every else count
