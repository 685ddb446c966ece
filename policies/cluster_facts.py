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
from policies.policy import Taint


class Choice(NamedTuple):
    """One way in which a request for devices may be met (k8s.io/api/resource/v1 ExactDeviceRequest, DeviceSubRequest)."""

    device_class: str
    least: int = 1
    most: int | None = 1
    """devices; None: nobody can say (``allocationMode: All``, a count that can't be read)"""
    admin: bool = False
    """``adminAccess``: it is given devices that others hold"""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    """of device taints, as they stand"""


Claim = tuple[tuple[Choice, ...], ...]
"""per request the ways to meet it: one, or as many as ``firstAvailable`` lists"""


class DeviceClass(NamedTuple):
    """What a DeviceClass says of its devices."""

    driver: str = ""
    """the one driver that its selectors admit; "" where they don't tell"""
    extended: str = ""
    """``extendedResourceName``, by which pods may ask for its devices in place of a claim (KEP-5004)"""


Requirement = tuple[str, str, tuple[str, ...]]
"""(label key, operator, values) as a NodePool has them"""
Key = str | tuple[str, str, str]
Part = Literal["namespaces", "nodes", "taints", "resources", "nodepool_grace", "nodepools", "device_classes", "claims"]
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
    taints: Mapping[str, tuple[Taint, ...]] = field(default_factory=dict)
    """name of a node -> its taints"""
    resources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """name of a node -> the extended resources that it offers, sorted"""
    nodepool_grace: Mapping[str, int | None] = field(default_factory=dict)
    """NodePool -> terminationGracePeriod in seconds, None where it has none"""
    nodepools: Mapping[str, NodePool] = field(default_factory=dict)
    """NodePool -> what it makes"""
    device_classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    """by name"""
    claims: Mapping[tuple[str, str, str], Claim] = field(default_factory=dict)
    """(ResourceClaim or ResourceClaimTemplate, namespace, name) -> what it asks for"""

    def driver(self, device_class: str) -> str:
        """The driver of a class; of one that is not known, or doesn't tell, its own name, by which published classes are called."""
        known = self.device_classes.get(device_class)
        return (known.driver if known is not None else "") or device_class

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
            return (
                Entry("nodes", name, _labels(thing, node_keys)),
                Entry("taints", name, tuple(_taints(thing))),
                Entry("resources", name, _offered(thing)),
            )
        case "NodePool":
            grace = duration.read(_map(thing, "spec", "template", "spec").get("terminationGracePeriod"))
            return Entry("nodepool_grace", name, None if grace is None else int(grace)), Entry("nodepools", name, _nodepool(thing))
        case "DeviceClass":
            return (Entry("device_classes", name, DeviceClass(_driver(thing), _text(_map(thing, "spec").get("extendedResourceName")))),)
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


_EFFECTS: tuple[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], ...] = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _taints(thing: Any) -> Iterator[Taint]:
    for item in _maps(_map(thing, "spec").get("taints")):
        effect = next((effect for effect in _EFFECTS if effect == item.get("effect")), None)
        if effect is not None and (key := _text(item.get("key"))):
            yield Taint(key=key, value=_text(item.get("value")), effect=effect)


def _offered(thing: Any) -> tuple[str, ...]:
    """Extended resources are those with a domain of their own (k8s.io/kubernetes pkg/apis/core/v1/helper IsExtendedResourceName)."""
    names = {*_map(thing, "status", "capacity"), *_map(thing, "status", "allocatable")}
    return tuple(sorted(name for name in names if isinstance(name, str) and "/" in name and "kubernetes.io/" not in name))


_DRIVER = re.compile(r"""(?:^|&&)\s*\(?\s*device\.driver\s*==\s*["']([^"']+)["']\s*\)?\s*(?:&&|$)""")
"""The CEL that every published DeviceClass uses to name its driver (k8s.io/api/resource/v1 DeviceSelector), where all must hold."""


def _driver(thing: Any) -> str:
    """Selectors are ANDed, so one that admits one driver alone is enough. What holds an OR, a choice or a negation tells nothing."""
    selectors = _maps(_map(thing, "spec").get("selectors"))
    expressions = (_text(_map(selector, "cel").get("expression")) for selector in selectors)
    plain = (text.strip() for text in expressions if not any(mark in text for mark in ("||", "?", "!")))
    return next((found[1] for text in plain if (found := _DRIVER.search(text))), "")


def _claim(kind: str, thing: Any) -> Claim:
    spec = _map(thing, "spec", "spec") if kind == "ResourceClaimTemplate" else _map(thing, "spec")
    return tuple(tuple(_choices(request)) for request in _maps(_map(spec, "devices").get("requests")))


def _choices(request: Mapping[Any, Any]) -> Iterator[Choice]:
    """v1 has ``exactly``; v1beta1 has the fields in place; ``firstAvailable`` lists what serves, best first."""
    choices = list(_maps(request.get("firstAvailable")))
    for exact in choices or [_map(request, "exactly") or request]:
        least, most = (1, None) if exact.get("allocationMode") == "All" else _count(exact.get("count"))
        tolerations = tuple(_maps(exact.get("tolerations")))
        yield Choice(_text(exact.get("deviceClassName")), least, most, exact.get("adminAccess") is True, tolerations)


def _count(value: Any) -> tuple[int, int | None]:
    """Absent and 0 are 1 (k8s.io/kubernetes pkg/apis/resource/v1/defaults.go); unknown where it is no count that a request can have."""
    if value is None:
        return 1, 1
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST:
        return 1, None
    return value or 1, value or 1
