"""One pod and one node: what a pod wants, and what keeps it off a node, as kube-scheduler's filters read both.

Requests and limits are defaulted as the API server does it (``SetDefaults_Pod`` in k8s.io/kubernetes
pkg/apis/core/v1/defaults.go), so that a pod may come before or after that.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from kube.labels import Expression, read_expression
from kube.node import Node, NodeGroup
from kube.pod import DEFAULT_SCHEDULER, NODE_NAME, NODE_SELECTOR, REQUIRED, TERMS, TOLERATIONS
from kube.requests import PODS, Amounts, HostPort, host_ports, requests
from kube.taints import HARD, UNSCHEDULABLE, Taint, is_tolerated, passes
from kube.tree import Path, Raw, map_at, maps_in, text_of

CLAIMS, GATES = "resourceClaims", "schedulingGates"
"""The fields of a pod with its claims, for which kube-scheduler asks drivers, and with gates, before whose end it does not look at it."""


class AffinityTerm(NamedTuple):
    """One of the required terms of node affinity, of which any is enough."""

    labels: tuple[Expression, ...]
    names: tuple[Expression, ...]
    """``matchFields``"""

    @property
    def empty(self) -> bool:
        """A term without conditions matches no node (k8s.io/component-helpers
        scheduling/corev1/nodeaffinity isEmptyNodeSelectorTerm)."""
        return not (self.labels or self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """One pod, as its place is judged."""

    requests: Amounts
    paths: Mapping[str, Path] = field(default_factory=dict)
    """Resource -> where the pod asks most for it."""
    largest: Mapping[str, int] = field(default_factory=dict)
    """Extended resource -> the most that one container asks for."""
    unreadable: frozenset[str] = frozenset()
    """Resources with an amount that is no quantity: they are not judged."""
    tolerations: tuple[Mapping[Any, Any], ...] = ()
    selector: tuple[Expression, ...] = ()
    terms: tuple[AffinityTerm, ...] | None = None
    """None without required node affinity."""
    node: str = ""
    """``spec.nodeName``"""
    ports: tuple[HostPort, ...] = ()
    scheduler: str = DEFAULT_SCHEDULER
    unjudged: tuple[str, ...] = ()
    """What kube-scheduler judges as well and this package does not: ``podAffinity``, ``volumes`` ..."""


def wants(pod: Mapping[str, Any]) -> Wants:
    """Read a pod. No content makes it raise."""
    spec = map_at(pod, "spec")
    requested = requests(spec)
    return Wants(
        requests=requested.amounts,
        paths=requested.paths,
        largest=requested.largest,
        unreadable=requested.unreadable,
        tolerations=tuple(maps_in(spec.get("tolerations"))),
        selector=node_selector(spec),
        terms=required_terms(spec),
        node=text_of(spec.get("nodeName")),
        ports=tuple(host_ports(spec)),
        scheduler=text_of(spec.get("schedulerName")) or DEFAULT_SCHEDULER,
        unjudged=tuple(_unjudged(spec)),
    )


def required_labels(pod: Wants) -> Iterator[Expression]:
    """Yield every expression on node labels that the pod requires, of all terms."""
    yield from pod.selector
    for term in pod.terms or ():
        yield from term.labels


def node_selector(spec: Mapping[Any, Any]) -> tuple[Expression, ...]:
    """Return the labels of ``spec.nodeSelector``, each as an expression."""
    labels = map_at(spec, "nodeSelector").items()
    return tuple(Expression(key, "In", (text_of(value),), (*NODE_SELECTOR, key)) for key, value in labels if isinstance(key, str))


def required_terms(spec: Mapping[Any, Any]) -> tuple[AffinityTerm, ...] | None:
    """Return the required terms of node affinity; None without any requirement, () where no node can match."""
    required = map_at(spec, "affinity", "nodeAffinity").get(TERMS[-2])
    if not isinstance(required, Mapping):
        return None
    terms = required.get(TERMS[-1])
    return tuple(_term(item, (*TERMS, i)) for i, item in enumerate(terms if isinstance(terms, list) else ()) if isinstance(item, Mapping))


def _term(item: Mapping[Any, Any], path: Path) -> AffinityTerm:
    return AffinityTerm(tuple(_expressions(item, "matchExpressions", path)), tuple(_expressions(item, "matchFields", path)))


def _expressions(item: Mapping[Any, Any], name: str, path: Path) -> Iterator[Expression]:
    items = item.get(name)
    for i, expression in enumerate(items if isinstance(items, list) else ()):
        if isinstance(expression, Mapping):
            yield read_expression(expression, (*path, name, i))


_LOCAL = frozenset(
    {"configMap", "secret", "emptyDir", "downwardAPI", "projected", "hostPath", "image", "nfs", "csi", "name"},
)
"""Kinds of volume that no filter of kube-scheduler reads (pkg/scheduler/framework/plugins/volumebinding, volumezone,
volumerestrictions, nodevolumelimits); ``csi`` is an inline volume, which only counts towards a node's limit of a driver."""


def _unjudged(spec: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the fields of the pod that other filters read."""
    affinity = map_at(spec, "affinity")
    for name in ("podAffinity", "podAntiAffinity"):
        required = map_at(affinity, name).get(REQUIRED)
        if isinstance(required, list) and required:
            yield name
    if any(item.get("whenUnsatisfiable") != "ScheduleAnyway" for item in maps_in(spec.get("topologySpreadConstraints"))):
        yield "topologySpreadConstraints"
    if any(set(volume) - _LOCAL for volume in maps_in(spec.get("volumes"))):
        yield "volumes"
    for name in (CLAIMS, GATES):
        if spec.get(name):
            yield name


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
    "claims",
    "node-class",
    "missing",
    "in-flight",
]
"""``taint``: not tolerated. ``label``: a nodeSelector or a required expression that the place does not meet.
``name``: ``matchFields`` or ``nodeName`` asks for another node. ``resource``: the place has less in all, even empty.
``capacity``: it has enough in all, but not free. ``ports``: a port of the host is taken. ``unschedulable``: cordoned.
``missing``: it has less, and a label of it (``operator``, with the value ``found``) says that it has enough (``values``: how many).
Of NodePools: ``in-flight``: Karpenter counts on a node (``key``) that is not initialized;
``machines``: it can make no machine with this; ``limits``: its limits leave no room; ``static``: it makes
no nodes for pods; ``not-ready``: Karpenter does not use it now; ``claims``: it makes no nodes for pods with claims, but
with options that are off by default."""


class Blocker(NamedTuple):
    """One reason. Amounts are in kube-scheduler's units (CPU in thousandths)."""

    kind: Kind
    key: str = ""
    """The key of the taint or label, the resource, or the port as ``8080/TCP``."""
    operator: str = ""
    """Of an expression; of a taint its effect."""
    values: tuple[str, ...] = ()
    """What the pod asks of the label. Of ``machines`` with none of a resource, the devices that they have instead."""
    found: str | None = None
    """The value of the taint, or of the label on the node; None if the node has no such label. Of ``machines`` and ``limits`` the
    machine that comes nearest; None if none does. Where it has 0 of the resource, its cloud does not count these devices. Of a
    ``resource`` of which one container asks for parts of more devices than the node has (``have``): how many parts there are."""
    need: int = 0
    have: int = 0
    """What is free, for ``capacity``; else what there is in all."""
    path: Path = ()
    """Where it stands in the pod; of a taint the list of tolerations."""
    passing: bool = False
    """True if it may end without a change to the pod or to what the place is made to be."""
    certain: bool = True
    """False if what is not known may prove it wrong: a machine of an unknown type."""


def of_node(pod: Wants, node: Node, startup: frozenset[str] = frozenset(), delegated: Container[str] = frozenset()) -> tuple[Blocker, ...]:
    """Return what keeps the pod off the node, in the order of kube-scheduler's filters; () if nothing does.

    ``startup``: keys of taints that go by themselves. ``delegated``: resources that a node need not list: a DeviceClass offers them
    (KEP-5004; noderesources/fit.go ``shouldDelegateResourceToDRA``), or an extender counts them (``ignoredByScheduler``).
    """
    return (*_schedulable(pod, node, startup), *_selected(pod, node), *_ports(pod, node), *_resources(pod, node, delegated))


def of_group(
    pod: Wants, group: NodeGroup, startup: frozenset[str] = frozenset(), delegated: Container[str] = frozenset()
) -> list[tuple[Blocker, ...]]:
    """Return what keeps the pod off each node of a group, in their order."""
    return [of_node(pod, node, startup, delegated) for node in group.nodes]


def untolerated(pod: Wants, taints: Iterable[Taint], startup: frozenset[str] = frozenset()) -> Iterator[Blocker]:
    """Yield each taint that keeps the pod off and is not tolerated (tainttoleration/taint_toleration.go)."""
    for taint in taints:
        if taint.effect in HARD and not is_tolerated(taint, pod.tolerations):
            yield Blocker("taint", taint.key, taint.effect, found=taint.value, path=TOLERATIONS, passing=passes(taint.key, startup))


def _schedulable(pod: Wants, node: Node, startup: frozenset[str]) -> Iterator[Blocker]:
    """nodeunschedulable/node_unschedulable.go, nodename/node_name.go, tainttoleration/taint_toleration.go"""
    if node.cordoned and not is_tolerated(UNSCHEDULABLE, pod.tolerations):
        yield Blocker("unschedulable", passing=True)
    if pod.node and pod.node != node.name:
        yield Blocker("name", "metadata.name", "In", (pod.node,), found=node.name, path=NODE_NAME)
    for blocker in untolerated(pod, node.taints, startup):
        if not (node.cordoned and blocker.key == UNSCHEDULABLE.key):
            yield blocker


def _selected(pod: Wants, node: Node) -> Iterator[Blocker]:
    """nodeaffinity/node_affinity.go: the nodeSelector, and any of the required terms."""
    for expression in pod.selector:
        if not expression.holds(node.labels):
            yield _label(expression, node.labels.get(expression.key), passing=not node.settled)
    if pod.terms is None:
        return
    failing = [list(_unmet(term, node)) for term in pod.terms]
    if not any(not unmet and not term.empty for term, unmet in zip(pod.terms, failing, strict=True)):
        yield from min((unmet for unmet in failing if unmet), key=len, default=[Blocker("label", path=TERMS)])


def _unmet(term: AffinityTerm, node: Node) -> Iterator[Blocker]:
    for expression in term.labels:
        if not expression.holds(node.labels):
            yield _label(expression, node.labels.get(expression.key), passing=not node.settled)
    for expression in term.names:
        if not expression.holds_name(node.name):
            yield Blocker("name", expression.key, expression.operator, expression.values, found=node.name, path=expression.path)


def _label(expression: Expression, found: str | None, *, passing: bool) -> Blocker:
    return Blocker("label", expression.key, expression.operator, expression.values, found, path=expression.path, passing=passing)


def _ports(pod: Wants, node: Node) -> Iterator[Blocker]:
    """nodeports/node_ports.go"""
    for port in pod.ports:
        if any(port.conflicts(taken) for taken in node.ports):
            yield Blocker("ports", f"{port.number}/{port.protocol}", passing=True)


def _resources(pod: Wants, node: Node, delegated: Container[str]) -> Iterator[Blocker]:
    """noderesources/fit.go ``fitsRequest``"""
    yield from _short(PODS, 1, node, ())
    for name, need in pod.requests.items():
        here = node.allocatable.get(name, 0)
        if need > 0 and name not in pod.unreadable and (here > 0 or name not in delegated):
            yield from _short(name, need, node, pod.paths.get(name, ()))
        if here > (physical := len(node.registered)) > 0 and pod.largest.get(name, 0) > physical:
            yield Blocker("resource", name, found=str(here), need=pod.largest[name], have=physical, path=pod.paths.get(name, ()))


def _short(name: str, need: int, node: Node, path: Path) -> Iterator[Blocker]:
    here = node.allocatable.get(name, 0)
    if need > here:
        expected = node.expected.get(name)
        if expected is not None and need <= (expected.number or need) and node.settled:
            number = (str(expected.number),) if expected.number else ()
            yield Blocker("missing", name, expected.key, number, expected.value, need, here, path, passing=True)
            return
        broken = "/" in name and need <= node.capacity.get(name, 0)
        yield Blocker("resource", name, need=need, have=here, path=path, passing=broken or not node.settled)
        return
    free = node.free(name)
    if free is not None and need > free:
        yield Blocker("capacity", name, need=need, have=free, path=path, passing=True)


def read_wants(pod: Mapping[str, Any] | Wants) -> Wants:
    """Return what a pod wants, which may have been read before."""
    return pod if isinstance(pod, Wants) else wants(pod)


def admits(raw: Raw, labels: Mapping[str, str], keys: Collection[str] | None = None) -> bool:
    """Return whether a node with these labels is one that the pod may be on. Terms by fields are about a name, and pass.

    ``keys``: the labels that count, if not all do: what the pod says of others is left out.
    """

    def hold(expressions: Iterable[Expression]) -> bool:
        return all(expression.holds(labels) for expression in expressions if keys is None or expression.key in keys)

    spec = map_at(raw, "spec")
    terms = required_terms(spec)
    return hold(node_selector(spec)) and (terms is None or any(hold(term.labels) for term in terms if not term.empty))
