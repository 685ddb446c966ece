"""The nodes of a cluster as kube-scheduler sees them, with what is free on each, and groups of nodes that are alike.

This is the only reader of a Node object: no content of one makes it raise.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kube.labels import GPU_DISCOVERED, HOSTNAME, MIG_STATE
from kube.pod import FINISHED
from kube.requests import PODS, Amounts, HostPort, amounts, host_ports, is_native, requests
from kube.taints import UNSCHEDULABLE, Taint, passes, taints_in
from kube.tree import Raw, condition_status, map_at, maps_in, text_of, texts_at

OWN = frozenset({HOSTNAME, GPU_DISCOVERED})
"""Labels of which each node has another value."""
_MANY = 8
"""Nodes, at least, by which a label is found to be one of those: more than a region has zones, or a cluster of a few
nodes has types."""


class Occupant(NamedTuple):
    """What a pod takes of the node that it is bound to."""

    node: str
    requests: Amounts
    ports: tuple[HostPort, ...] = ()


def occupant(pod: Mapping[str, Any]) -> Occupant | None:
    """Return what a pod takes; None if it has no node, or is finished."""
    node = text_of(map_at(pod, "spec").get("nodeName"))
    if not node or map_at(pod, "status").get("phase") in FINISHED:
        return None
    spec = map_at(pod, "spec")
    return Occupant(node, requests(spec).amounts, tuple(host_ports(spec)))


class RegisteredDevice(NamedTuple):
    """One physical device that a vGPU maker's device plugin registers in an annotation of its node."""

    id: str
    shares: int
    """How many containers may have a part of it at once."""
    memory_mib: int
    healthy: bool
    model: str = ""
    """As the vendor's library names it: ``NVIDIA A100-SXM4-80GB``, before HAMi 2.5 with the vendor once more before it."""


class ExpectedAmount(NamedTuple):
    """What a label says that a node has of a resource which it lacks."""

    number: int
    """0 if it does not say how many."""
    key: str
    """The label, with its value."""
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    provider: str = ""
    """``spec.providerID``, by which its cloud knows it"""
    cordoned: bool = False
    """``spec.unschedulable``"""
    ready: bool = True
    """Its condition Ready. No filter reads it: a node that is not ready has a taint."""
    settled: bool = True
    """False while it starts, or its devices are reconfigured: its labels and resources may still come."""
    allocatable: Amounts
    capacity: Amounts
    """Of extended resources, those that are there but are not healthy, too."""
    used: Amounts | None
    """The requests of the pods that are bound to it; None if they are not known."""
    ports: tuple[HostPort, ...] = ()
    """Those that such pods take."""
    created: str = ""
    """As the API server writes times; "" if it is not known."""
    registered: tuple[RegisteredDevice, ...] = ()
    """The physical devices of which a vGPU maker offers parts; () if none does."""
    expected: Mapping[str, ExpectedAmount] = field(default_factory=dict)
    """Extended resource -> what its labels say that it has, of those that it lacks now."""

    @property
    def extended(self) -> list[str]:
        """The extended resources that are there, healthy or not, sorted."""
        return sorted(name for name in {*self.capacity, *self.allocatable} if not is_native(name))

    def offered(self, resource: str) -> int:
        """Return the amount of a resource that is there, healthy or not."""
        return max(self.capacity.get(resource, 0), self.allocatable.get(resource, 0))

    def free(self, resource: str) -> int | None:
        """Return what is left of a resource; None if that is not known."""
        return None if self.used is None else self.allocatable.get(resource, 0) - self.used.get(resource, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes that differ only in their names, in labels that each node has another value of, and in what is
    taken of them."""

    nodes: tuple[Node, ...]
    """In order of their names; at least one."""
    labels: Mapping[str, str]
    """Those that all have."""
    own: frozenset[str] = frozenset()
    """Keys of labels of which each node has its own value."""

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.nodes[0].taints

    @property
    def cordoned(self) -> bool:
        return self.nodes[0].cordoned

    @property
    def allocatable(self) -> Amounts:
        return self.nodes[0].allocatable


def nodes(objects: Iterable[Mapping[str, Any]], occupants: Iterable[Occupant] | None, startup: Iterable[str] = ()) -> Iterator[Node]:
    """Yield the nodes of these Node objects. ``occupants``: None if it is not known what is bound to them.
    ``startup``: keys of taints that go by themselves."""
    used, ports = _taken(occupants or ())
    startup = frozenset(startup)
    for value in objects:
        node = read_node(value, startup)
        if node.name:
            taken: Amounts | None = None if occupants is None else used.get(node.name, Counter())
            yield replace(node, used=taken, ports=tuple(ports.get(node.name, ())))


def _taken(occupants: Iterable[Occupant]) -> tuple[dict[str, Counter[str]], dict[str, list[HostPort]]]:
    used: dict[str, Counter[str]] = {}
    ports: dict[str, list[HostPort]] = {}
    for occupant in occupants:
        taken = used.setdefault(occupant.node, Counter())
        taken.update(occupant.requests)
        taken[PODS] += 1
        if occupant.ports:
            ports.setdefault(occupant.node, []).extend(occupant.ports)
    return used, ports


def read_node(value: Any, startup: Iterable[str] = ()) -> Node:
    """Return a Node object as a node of which it is not known what is bound to it. ``startup``: keys of taints that go by
    themselves."""
    spec, status = map_at(value, "spec"), map_at(value, "status")
    labels, taints = texts_at(value, "metadata", "labels"), tuple(taints_in(spec.get("taints")))
    ready = condition_status(value, "Ready") in ("True", None)
    starts = any(passes(taint.key, startup) for taint in taints if taint.key != UNSCHEDULABLE.key)
    return Node(
        name=text_of(map_at(value, "metadata").get("name")),
        labels=labels,
        taints=taints,
        provider=text_of(spec.get("providerID")),
        cordoned=spec.get("unschedulable") is True,
        ready=ready,
        settled=ready and not starts and labels.get(MIG_STATE) not in ("pending", "rebooting"),
        allocatable=amounts(map_at(status, "allocatable")),
        capacity=amounts(map_at(status, "capacity")),
        used=None,
        created=text_of(map_at(value, "metadata").get("creationTimestamp")),
        registered=tuple(_registered(texts_at(value, "metadata", "annotations"))),
    )


_REGISTER = re.compile(r"(?:hami\.io|4pd\.io|volcano\.sh)/node-(?:[\w.-]+-)?register(?:-[\w.-]+)?")
"""Annotations in which the device plugins of HAMi (pkg/device/*/device.go; before 2.4 under 4pd.io) and of Volcano
(volcano-vgpu-device-plugin ``volcano.sh/node-vgpu-register``) list the devices of their node."""
_MOST_REGISTERED = 256
"""Devices of one node that are read."""


def _registered(annotations: Mapping[str, str]) -> Iterator[RegisteredDevice]:
    """Yield the devices in such annotations, each once."""
    seen = set[str]()
    for key, text in annotations.items():
        if _REGISTER.fullmatch(key):
            for device in _devices_in(text):
                if device.id and device.id not in seen and len(seen) < _MOST_REGISTERED:
                    seen.add(device.id)
                    yield device


def _devices_in(text: str) -> Iterator[RegisteredDevice]:
    """Yield the devices of one annotation: a list in JSON since HAMi 2.5, before that and of Volcano ``ID,COUNT,MEMORY,...,HEALTHY,...:``
    for each (HAMi pkg/device/devices.go UnMarshalNodeDevices, DecodeNodeDevices). Health is left out of JSON where it is false."""
    if text.startswith("["):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            return
        for item in maps_in(listed):
            sizes = _whole(item.get("count")), _whole(item.get("devmem"))
            yield RegisteredDevice(text_of(item.get("id")), *sizes, item.get("health") is True, text_of(item.get("type")))
        return
    for part in text.split(":"):
        fields = part.split(",")
        if len(fields) >= 5:
            model = fields[3] if not fields[3].isdecimal() else fields[4]
            yield RegisteredDevice(fields[0], _whole(fields[1]), _whole(fields[2]), "false" not in fields, model)


def _whole(value: Any) -> int:
    text = text_of(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0


def registers(value: Any) -> dict[str, str]:
    """Return the annotations of a Node by which physical devices are known."""
    return {key: text for key, text in texts_at(value, "metadata", "annotations").items() if _REGISTER.fullmatch(key)}


def label_number(labels: Mapping[str, str], key: str) -> int | None:
    """Return the whole number that a label has; None if it has none."""
    text = labels.get(key, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def slimmed_node(value: Any, *, whole: bool) -> dict[str, Raw]:
    """Return the parts of a Node that ``read_node`` reads; of its ID the beginning, which names the cloud. Most of the rest are images.

    ``whole``: with what decisions do not read and what changes often: amounts of native resources, Ready, and whether it is cordoned.
    """
    spec, status = map_at(value, "spec"), map_at(value, "status")
    ready, provider = condition_status(value, "Ready"), text_of(spec.get("providerID"))
    of_spec: Raw = {
        "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in taints_in(spec.get("taints"))],
        "providerID": provider[: provider.find("://") + 3],
        "unschedulable": whole and spec.get("unschedulable") is True,
    }
    of_status: Raw = {"conditions": [{"type": "Ready", "status": ready}] if whole and ready is not None else []}
    for part in ("capacity", "allocatable"):
        of_status[part] = {name: amount for name, amount in texts_at(status, part).items() if whole or not is_native(name)}
    parts = {"spec": of_spec, "status": of_status}
    return {part: kept for part, fields in parts.items() if (kept := {name: field for name, field in fields.items() if field})}


def group_nodes(all_nodes: Iterable[Node]) -> tuple[NodeGroup, ...]:
    """Return the nodes in groups, in order of the first name in each."""
    every = sorted(all_nodes, key=lambda node: node.name)
    own = _own_keys(every)
    groups: dict[Any, list[Node]] = {}
    for node in every:
        shared = frozenset((key, label) for key, label in node.labels.items() if key not in own)
        sizes = tuple(sorted(node.allocatable.items())), tuple(sorted((k, v) for k, v in node.capacity.items() if "/" in k))
        devices = len(node.registered), tuple(sorted(node.expected.items()))
        groups.setdefault((shared, tuple(sorted(node.taints)), node.cordoned, node.settled, sizes, devices), []).append(node)
    return tuple(NodeGroup(nodes=tuple(group), labels=dict(sorted(key[0])), own=own) for key, group in groups.items())


def _own_keys(every: Sequence[Node]) -> frozenset[str]:
    """Return the labels that name a machine: the host name, and those of which so many nodes have each another
    value."""
    values: dict[str, list[str]] = {}
    for node in every:
        for key, value in node.labels.items():
            values.setdefault(key, []).append(value)
    return OWN | {key for key, seen in values.items() if len(seen) >= _MANY and len(set(seen)) == len(seen)}
