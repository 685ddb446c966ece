"""What keeps a pod off a node, or keeps a NodePool from making a machine for it, as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from kube.taints import Taint
from policies.facts.places import passes
from policies.scheduling.amounts import PODS
from policies.scheduling.conditions import holds, names, tolerates
from policies.scheduling.nodes import Node, NodeGroup
from policies.scheduling.wants import TERMS, AffinityTerm, LabelRequirement, Wants, wants
from policies.verdict import Path

Kind = Literal[
    "taint",
    "label",
    "name",
    "resource",
    "capacity",
    "ports",
    "unschedulable",
    "machines",
    "limits",
    "static",
    "not-ready",
]
"""``taint``: not tolerated. ``label``: a nodeSelector or a required expression that the place does not meet.
``name``: ``matchFields`` or ``nodeName`` asks for another node. ``resource``: the place has less in all, even empty.
``capacity``: it has enough in all, but not free. ``ports``: a port of the host is taken. ``unschedulable``: cordoned.
Of NodePools: ``machines``: it can make no machine with this; ``limits``: its limits leave no room; ``static``: it makes
no nodes for pods; ``not-ready``: Karpenter does not use it now."""


class Blocker(NamedTuple):
    """One reason. Amounts are in kube-scheduler's units (CPU in thousandths)."""

    kind: Kind
    key: str = ""
    """The key of the taint or label, the resource, or the port as ``8080/TCP``."""
    operator: str = ""
    """Of an expression; of a taint its effect."""
    values: tuple[str, ...] = ()
    """What the pod asks of the label."""
    found: str | None = None
    """The value of the taint, or of the label on the node; None if the node has no such label."""
    need: int = 0
    have: int = 0
    """What is free, for ``capacity``; else what there is in all."""
    path: Path = ()
    """Where it stands in the pod; of a taint the list of tolerations."""
    passing: bool = False
    """True if it may end without a change to the pod or to what the place is made to be."""
    certain: bool = True
    """False if what is not known may prove it wrong: a machine that the catalog lacks."""


TOLERATIONS: Path = ("spec", "tolerations")
_NODE_NAME: Path = ("spec", "nodeName")
_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", value="", effect="NoSchedule")
HARD = ("NoSchedule", "NoExecute")
"""Effects that keep pods off (pkg/scheduler/framework/plugins/helper ``DoNotScheduleTaintsFilterFunc``)."""


def of_node(pod: Wants, node: Node, startup: frozenset[str] = frozenset(), delegated: frozenset[str] = frozenset()) -> tuple[Blocker, ...]:
    """Return what keeps the pod off the node, in the order of kube-scheduler's filters; () if nothing does.

    ``startup``: keys of taints that go by themselves. ``delegated``: resources that a DeviceClass offers, which a node
    need not list (KEP-5004; noderesources/fit.go ``shouldDelegateResourceToDRA``).
    """
    return (*_schedulable(pod, node, startup), *_selected(pod, node), *_ports(pod, node), *_resources(pod, node, delegated))


def of_group(
    pod: Wants, group: NodeGroup, startup: frozenset[str] = frozenset(), delegated: frozenset[str] = frozenset()
) -> list[tuple[Blocker, ...]]:
    """Return what keeps the pod off each node of a group, in their order."""
    return [of_node(pod, node, startup, delegated) for node in group.nodes]


def untolerated(pod: Wants, taints: Iterable[Taint], startup: frozenset[str] = frozenset()) -> Iterator[Blocker]:
    """Yield each taint that keeps the pod off and is not tolerated (tainttoleration/taint_toleration.go)."""
    for taint in taints:
        if taint.effect in HARD and not tolerates(pod.tolerations, taint):
            yield Blocker("taint", taint.key, taint.effect, found=taint.value, path=TOLERATIONS, passing=passes(taint.key, startup))


def _schedulable(pod: Wants, node: Node, startup: frozenset[str]) -> Iterator[Blocker]:
    """nodeunschedulable/node_unschedulable.go, nodename/node_name.go, tainttoleration/taint_toleration.go"""
    if node.cordoned and not tolerates(pod.tolerations, _UNSCHEDULABLE):
        yield Blocker("unschedulable", passing=True)
    if pod.node and pod.node != node.name:
        yield Blocker("name", "metadata.name", "In", (pod.node,), found=node.name, path=_NODE_NAME)
    for blocker in untolerated(pod, node.taints, startup):
        if not (node.cordoned and blocker.key == _UNSCHEDULABLE.key):
            yield blocker


def _selected(pod: Wants, node: Node) -> Iterator[Blocker]:
    """nodeaffinity/node_affinity.go: the nodeSelector, and any of the required terms."""
    for expression in pod.selector:
        if not holds(expression, node.labels):
            yield _label(expression, node.labels.get(expression.key), passing=not node.settled)
    if pod.terms is None:
        return
    failing = [list(_unmet(term, node)) for term in pod.terms]
    if not any(not found and not term.empty for term, found in zip(pod.terms, failing, strict=True)):
        yield from min((found for found in failing if found), key=len, default=[Blocker("label", path=TERMS)])


def _unmet(term: AffinityTerm, node: Node) -> Iterator[Blocker]:
    for expression in term.labels:
        if not holds(expression, node.labels):
            yield _label(expression, node.labels.get(expression.key), passing=not node.settled)
    for expression in term.names:
        if not names(expression, node.name):
            yield Blocker("name", expression.key, expression.operator, expression.values, found=node.name, path=expression.path)


def _label(expression: LabelRequirement, found: str | None, *, passing: bool) -> Blocker:
    return Blocker("label", expression.key, expression.operator, expression.values, found, path=expression.path, passing=passing)


def _ports(pod: Wants, node: Node) -> Iterator[Blocker]:
    """nodeports/node_ports.go"""
    for port in pod.ports:
        if any(port.conflicts(taken) for taken in node.ports):
            yield Blocker("ports", f"{port.number}/{port.protocol}", passing=True)


def _resources(pod: Wants, node: Node, delegated: frozenset[str]) -> Iterator[Blocker]:
    """noderesources/fit.go ``fitsRequest``"""
    yield from _short(PODS, 1, node, ())
    for name, need in pod.requests.items():
        here = node.allocatable.get(name, 0)
        if need > 0 and name not in pod.unreadable and (here > 0 or name not in delegated):
            yield from _short(name, need, node, pod.paths.get(name, ()))


def _short(name: str, need: int, node: Node, path: Path) -> Iterator[Blocker]:
    here = node.allocatable.get(name, 0)
    if need > here:
        broken = "/" in name and need <= node.capacity.get(name, 0)
        yield Blocker("resource", name, need=need, have=here, path=path, passing=broken or not node.settled)
        return
    free = node.free(name)
    if free is not None and need > free:
        yield Blocker("capacity", name, need=need, have=free, path=path, passing=True)


def read_wants(pod: Mapping[str, Any] | Wants) -> Wants:
    """Return what a pod wants, which may have been read before."""
    return pod if isinstance(pod, Wants) else wants(pod)
