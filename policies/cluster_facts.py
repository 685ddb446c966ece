"""What is known of the cluster besides policies: namespaces, nodes, NodePools, DRA classes and claims, as plain maps.

``read`` takes one Kubernetes object as a dict, from a file or a watch, and says what to put where; ``ClusterFacts.from_objects`` is
all of them together, so that every rule that needs facts is tested purely. Nothing that is in an object can make it raise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from policies import duration

Claim = tuple[tuple[str, int], ...]
"""((device class, count), ...); count 0 stands for 'all', which can't be counted"""
Requirement = tuple[str, str, tuple[str, ...]]
"""(label key, operator, values) as a NodePool has them"""
Key = str | tuple[str, str, str]
Part = Literal["namespaces", "nodes", "nodepool_grace", "nodepools", "device_classes", "claims"]
KINDS = ("Namespace", "Node", "NodePool", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate")


class NodePool(NamedTuple):
    """What tells which nodes a NodePool of Karpenter makes (sigs.k8s.io/karpenter pkg/apis/v1/nodepool.go)."""

    node_class: str = ""
    """API group of its node class: ``karpenter.k8s.aws``"""
    requirements: tuple[Requirement, ...] = ()


class Entry(NamedTuple):
    """One thing that an object says: ``value`` belongs under ``key`` in the map ``part`` of ClusterFacts."""

    part: Part
    key: Key
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """name -> labels"""
    nodes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """name -> labels, all or those that ``detect.node_keys`` names"""
    nodepool_grace: Mapping[str, int | None] = field(default_factory=dict)
    """NodePool -> terminationGracePeriod in seconds, None where it has none"""
    nodepools: Mapping[str, NodePool] = field(default_factory=dict)
    """NodePool -> what it makes"""
    device_classes: Mapping[str, str] = field(default_factory=dict)
    """DeviceClass -> driver, "" where its selectors name none"""
    claims: Mapping[tuple[str, str, str], Claim] = field(default_factory=dict)
    """(ResourceClaim or ResourceClaimTemplate, namespace, name) -> what it asks for"""

    @classmethod
    def from_objects(cls, objects: Iterable[Any], node_keys: AbstractSet[str] | None = None) -> ClusterFacts:
        """Facts from dumped objects. Other kinds are ignored; an object that lacks what is read counts as empty."""
        things = (thing for thing in objects if isinstance(thing, Mapping))
        return cls().changed(entry for thing in things for entry in read(thing.get("kind"), thing, node_keys))

    def changed(self, put: Iterable[Entry], gone: Iterable[Entry] = ()) -> ClusterFacts:
        """These facts with the entries ``put`` and without those ``gone`` (whose values don't matter). Only maps in which something
        differs are copied (0.2 ms for 10,000 nodes); where nothing does, the answer is this very object."""
        maps: dict[str, dict[Key, Any]] = {}
        for part, key, value in put:
            if _map_of(self, maps, part).get(key, _NONE) != value:
                _own(self, maps, part)[key] = value
        for part, key, _ in gone:
            if key in _map_of(self, maps, part):
                del _own(self, maps, part)[key]
        copies: dict[str, Any] = {**maps}
        return replace(self, **copies) if copies else self


_NONE = object()


def _map_of(facts: ClusterFacts, maps: Mapping[str, dict[Key, Any]], part: Part) -> Mapping[Key, Any]:
    found: Mapping[Key, Any] = maps[part] if part in maps else getattr(facts, part)
    return found


def _own(facts: ClusterFacts, maps: dict[str, dict[Key, Any]], part: Part) -> dict[Key, Any]:
    """The copy that may be written to."""
    if part not in maps:
        maps[part] = dict(getattr(facts, part))
    return maps[part]


def read(kind: Any, thing: Any, node_keys: AbstractSet[str] | None = None) -> tuple[Entry, ...]:
    """What one object says. () for another kind (items of a List don't name theirs, so it is told apart), and without a name.

    ``node_keys``: the labels of nodes that are kept, all without. The keys of the entries come from kind, namespace and name alone,
    so the last state of a deleted object, however little of it there is, says what is gone.
    """
    name = _text(_map(thing, "metadata").get("name"))
    if not name or not isinstance(kind, str):
        return ()
    match kind:
        case "Namespace":
            return (Entry("namespaces", name, _labels(thing)),)
        case "Node":
            return (Entry("nodes", name, _labels(thing, node_keys)),)
        case "NodePool":
            grace = duration.read(_map(thing, "spec", "template", "spec").get("terminationGracePeriod"))
            return Entry("nodepool_grace", name, grace), Entry("nodepools", name, _nodepool(thing))
        case "DeviceClass":
            return (Entry("device_classes", name, _driver(thing)),)
        case "ResourceClaim" | "ResourceClaimTemplate":
            namespace = _text(_map(thing, "metadata").get("namespace")) or "default"
            return (Entry("claims", (kind, namespace, name), _claim(kind, thing)),)
    return ()


# --- what is in an object, whatever it is ------------------------------------------------------------------------------


def _map(thing: Any, *keys: str) -> Mapping[Any, Any]:
    for key in keys:
        thing = thing.get(key) if isinstance(thing, Mapping) else None
    return thing if isinstance(thing, Mapping) else {}


def _maps(thing: Any) -> Iterator[Mapping[Any, Any]]:
    """The maps in a list."""
    return (item for item in thing if isinstance(item, Mapping)) if isinstance(thing, list) else iter(())


_LARGEST = 2**63
"""Integers of Kubernetes are below (int64); Python refuses to write those of more than 4,300 digits."""


def _text(value: Any) -> str:
    """A string, and what YAML makes of one that is written bare; "" for anything else, as for null."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, float) or (isinstance(value, int) and abs(value) < _LARGEST) else ""


def _labels(thing: Any, keys: AbstractSet[str] | None = None) -> dict[str, str]:
    labels = _map(thing, "metadata", "labels")
    if keys is None:
        return {_text(key): _text(value) for key, value in labels.items()}
    # The keys are those of the set, so that all nodes share the same strings: 10,000 nodes of 40 labels take 13 MiB, with all labels 31.
    return {key: _text(labels[key]) for key in keys if key in labels}


def _nodepool(thing: Any) -> NodePool:
    """v1beta1 has the apiVersion of the node class in place of its group."""
    spec = _map(thing, "spec", "template", "spec")
    node_class = _map(spec, "nodeClassRef")
    group = _text(node_class.get("group")) or _text(node_class.get("apiVersion")).rpartition("/")[0]
    return NodePool(group, tuple(_requirement(item) for item in _maps(spec.get("requirements"))))


def _requirement(item: Mapping[Any, Any]) -> Requirement:
    values = item.get("values")
    texts = tuple(_text(value) for value in values) if isinstance(values, list) else ()
    return _text(item.get("key")), _text(item.get("operator")), texts


_DRIVER = re.compile(r"""device\.driver\s*==\s*["']([^"']+)["']""")
"""The CEL that every published DeviceClass uses to name its driver (k8s.io/api/resource/v1 DeviceSelector)."""


def _driver(thing: Any) -> str:
    selectors = _maps(_map(thing, "spec").get("selectors"))
    expressions = (_text(_map(selector, "cel").get("expression")) for selector in selectors)
    return next((found[1] for text in expressions if (found := _DRIVER.search(text))), "")


def _claim(kind: str, thing: Any) -> Claim:
    spec = _map(thing, "spec", "spec") if kind == "ResourceClaimTemplate" else _map(thing, "spec")
    return tuple(_request(request) for request in _maps(_map(spec, "devices").get("requests")))


def _request(request: Mapping[Any, Any]) -> tuple[str, int]:
    """v1 has ``exactly``; v1beta1 has the fields in place; ``firstAvailable`` counts by its first choice."""
    choices = request.get("firstAvailable")
    first = choices[0] if isinstance(choices, list) and choices else None
    exact = first if isinstance(first, Mapping) else _map(request, "exactly") or request
    return _text(exact.get("deviceClassName")), 0 if exact.get("allocationMode") == "All" else _count(exact.get("count"))


def _count(value: Any) -> int:
    """Absent and 0 are 1 (k8s.io/kubernetes pkg/apis/resource/v1/defaults.go); 0 where it is no count that a request can have."""
    if value is None:
        return 1
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST:
        return 0
    return value or 1
