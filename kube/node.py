"""The nodes of a cluster as kube-scheduler sees them, with what is free on each, and groups of nodes that are
alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kube.labels import HOSTNAME
from kube.pod import FINISHED
from kube.requests import PODS, Amounts, HostPort, amounts, host_ports, requests
from kube.taints import Taint, passes, taints_of
from kube.tree import map_at, maps_in, text_of

STARTED = "nvidia.com/gfd.timestamp"
"""When GPU Feature Discovery started on the node, in Unix seconds; not written with ``--no-timestamp`` (NVIDIA/k8s-device-plugin
internal/lm/timestamp.go)."""
OWN = frozenset({HOSTNAME, STARTED})
"""Labels of which each node has another value."""
_MANY = 8
"""Nodes, at least, by which a label is found to be one of those: more than a region has zones, or a cluster of a few
nodes has types."""
MIG_STATE = "nvidia.com/mig.config.state"
"""Of NVIDIA's MIG manager: ``pending`` or ``rebooting`` while the devices of a node change."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
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
        node = _node(value, startup)
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


def _node(value: Mapping[str, Any], startup: frozenset[str]) -> Node:
    spec, status = map_at(value, "spec"), map_at(value, "status")
    labels = {text_of(key): text_of(label) for key, label in map_at(value, "metadata", "labels").items()}
    taints = tuple(taints_of(value))
    ready = not any(
        condition.get("type") == "Ready" and condition.get("status") != "True" for condition in maps_in(status.get("conditions"))
    )
    starts = any(passes(taint.key, startup) for taint in taints if taint.key != "node.kubernetes.io/unschedulable")
    return Node(
        name=text_of(map_at(value, "metadata").get("name")),
        labels=labels,
        taints=taints,
        cordoned=spec.get("unschedulable") is True,
        ready=ready,
        settled=ready and not starts and labels.get(MIG_STATE) not in ("pending", "rebooting"),
        allocatable=amounts(map_at(status, "allocatable")),
        capacity=amounts(map_at(status, "capacity")),
        used=None,
    )


def group_nodes(all_nodes: Iterable[Node]) -> tuple[NodeGroup, ...]:
    """Return the nodes in groups, in order of the first name in each."""
    every = sorted(all_nodes, key=lambda node: node.name)
    own = _own_keys(every)
    groups: dict[Any, list[Node]] = {}
    for node in every:
        shared = frozenset((key, label) for key, label in node.labels.items() if key not in own)
        taints = tuple(sorted(node.taints, key=lambda taint: (taint.key, taint.value, taint.effect)))
        sizes = tuple(sorted(node.allocatable.items())), tuple(sorted((k, v) for k, v in node.capacity.items() if "/" in k))
        groups.setdefault((shared, taints, node.cordoned, node.settled, sizes), []).append(node)
    return tuple(NodeGroup(nodes=tuple(group), labels=dict(sorted(key[0])), own=own) for key, group in groups.items())


def _own_keys(every: Sequence[Node]) -> frozenset[str]:
    """Return the labels that name a machine: the host name, and those of which so many nodes have each another
    value."""
    values: dict[str, list[str]] = {}
    for node in every:
        for key, value in node.labels.items():
            values.setdefault(key, []).append(value)
    return OWN | {key for key, seen in values.items() if len(seen) >= _MANY and len(set(seen)) == len(seen)}
