"""All places of a cluster: its nodes in groups, and its NodePools; and whether a pod can ever run on any."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from catalog import Catalog
from catalog.resources import OF_A_CLASS
from kube.karpenter import read_node_class
from kube.labels import CAST_AI, EKS_GROUP, INITIALIZED, NODE_POOL, SCALED_BY_CLOUD
from kube.node import Node, NodeGroup, Occupant, group_nodes, nodes
from kube.pod import DEFAULT_SCHEDULER
from kube.scheduling import CLAIMS, Blocker, Wants, of_node, read_wants, wants
from kube.tree import map_at, text_of
from policies.facts import cluster_facts
from policies.facts.device_modes import Published
from policies.facts.platform_detection import newer
from policies.offers.table import Table
from policies.placement import pool_blockers
from policies.placement.expected_devices import expecting
from policies.placement.new_machines import MachineReader, NewNodes
from policies.placement.pools import Pool, PoolReader
from policies.placement.unchecked import Unchecked

KINDS = ("Node", "NodePool", "DeviceClass", "DaemonSet", "EC2NodeClass")
"""The kinds of object by which places are known."""
Place = Node | Pool
Outlook = Literal["now", "later", "unknown", "never"]
"""Of a pod on a place. ``now``: nothing that is judged is in its way. ``later``: all that is in its way may end by itself.
``unknown``: what is in its way is not certain. ``never``: something is in its way until the pod or the cluster is changed.
What is not judged (``Wants.unjudged``) may still keep the pod off: it makes nothing possible that is not."""
OUTLOOKS: tuple[Outlook, ...] = ("now", "later", "unknown", "never")
"""The best first."""
_AUTOSCALED_WITHOUT_KARPENTER = (
    EKS_GROUP,
    "alpha.eksctl.io/nodegroup-name",
    "kops.k8s.io/instancegroup",
    "node.cluster.x-k8s.io/esxi-host",
    "cloud.ibm.com/worker-pool-name",
    "doks.digitalocean.com/node-pool",
    "oke.oraclecloud.com/pool.name",
    "k8s.scaleway.com/pool-name",
    CAST_AI,
)
"""Labels of groups that Cluster Autoscaler may scale; where there are NodePools, these nodes are those on which Karpenter itself
runs, as its documentation sets it up."""


@dataclass(frozen=True, slots=True)
class DelegatedNames:
    """Resources that kube-scheduler leaves to others: a DeviceClass offers them, or the extender of a vGPU maker counts them."""

    classes: frozenset[str] = frozenset()
    catalog: Catalog | None = None
    _makers: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.classes or bool(self.maker(name)))

    def maker(self, name: str) -> str:
        """Return the vGPU maker whose extender counts a resource; "" if none does."""
        if name not in self._makers:
            self._makers[name] = "" if self.catalog is None else self.catalog.ignored_by(name)
        return self._makers[name]

    def left_out(self, wanted: Wants, listed: Container[str]) -> frozenset[Unchecked]:
        """Return what is not checked of a pod's requests on a node that lists these resources."""
        every: Iterator[Unchecked] = (
            "deviceClasses" if name in self.classes else "vgpuAmounts" for name in wanted.requests if name in self and name not in listed
        )
        return frozenset(every)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Made by ``fleet_of``."""

    groups: tuple[NodeGroup, ...] = ()
    pools: tuple[Pool, ...] = ()
    startup: frozenset[str] = frozenset()
    """Keys of taints that nodes of the NodePools have only while they start."""
    delegated: DelegatedNames = field(default_factory=lambda: DelegatedNames())
    """Resources that a node need not list."""
    open_ended: bool = False
    """True if there may be places that are not known here: nodes could not be read, or another autoscaler makes some."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(node for group in self.groups for node in group.nodes)

    def unchecked(self, pod: Wants) -> frozenset[Unchecked]:
        """Return what was not checked of the places that have nothing against the pod; nothing if one of them was checked whole."""
        missed: frozenset[Unchecked] = frozenset()
        for place, found in _places(pod, self):
            if not found:
                left_out = self._unchecked_of(pod, place)
                if not left_out:
                    return frozenset()
                missed |= left_out
        return missed

    def _unchecked_of(self, pod: Wants, place: Place) -> frozenset[Unchecked]:
        if isinstance(place, Pool):
            return pool_blockers.unchecked_of_pool(pod, place)
        left_out = self.delegated.left_out(pod, place.allocatable)
        return left_out | {"podsOnNodes"} if place.used is None else left_out


def fleet_of(
    objects: Iterable[Mapping[str, Any]],
    *,
    catalog: Catalog,
    tables: Mapping[str, Table],
    occupants: Iterable[Occupant] | None = None,
    published: Published | None = None,
    open_ended: bool | None = None,
) -> Fleet:
    """Return the places in these objects of ``KINDS``; others are passed over. No cluster is without DaemonSets: where none is there, they
    are not known.

    ``occupants``: what is bound to the nodes (``occupant`` of every pod); None if that is not known, and then nothing is
    ever short of ``capacity``. ``published``: what DRA drivers publish for nodes. ``open_ended``: None to find it by the labels of nodes.
    """
    by_kind: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in KINDS}
    for value in objects:
        by_kind.get(str(value.get("kind")), []).append(value)
    reader = PoolReader(catalog, tables)
    daemons = tuple(wants(map_at(value, "spec", "template")) for value in by_kind["DaemonSet"])
    classes = {text_of(map_at(value, "metadata").get("name")): read_node_class(value) for value in by_kind["EC2NodeClass"]}
    sizes = MachineReader(catalog, NewNodes(daemons=daemons or None, node_classes=classes))
    read = (sizes.sized(pool) for value in by_kind["NodePool"] if (pool := reader.read(value)))
    pools = tuple(sorted(read, key=lambda pool: (-pool.weight, pool.name)))
    startup = frozenset(taint.key for pool in pools for taint in pool.startup_taints)
    every = tuple(nodes(by_kind["Node"], occupants, startup))
    offers = [entry for value in by_kind["DeviceClass"] for entry in cluster_facts.read_facts("DeviceClass", value)]
    if published or not any(entry.value.driver in catalog.dra_drivers for entry in offers):  # else drivers may publish what is not known
        every = tuple(_expecting(node, (published or {}).get(node.name, {}), catalog) for node in every)
    if open_ended is None:
        managed = SCALED_BY_CLOUD if pools else SCALED_BY_CLOUD + _AUTOSCALED_WITHOUT_KARPENTER
        open_ended = any(key in node.labels for node in every for key in managed)
    delegated = {name for entry in offers for name in (entry.value.extended, f"{OF_A_CLASS}{entry.key}") if name}
    names = DelegatedNames(frozenset(delegated), catalog)
    return Fleet(groups=group_nodes(every), pools=pools, startup=startup, delegated=names, open_ended=open_ended)


def _expecting(node: Node, published: Mapping[str, int], catalog: Catalog) -> Node:
    """Return a node with what it should offer and does not."""
    expected = expecting(node, newer(catalog, node.labels), published, catalog)
    return replace(node, expected=expected) if expected else node


def blockers(pod: Mapping[str, Any] | Wants, place: Place, fleet: Fleet) -> tuple[Blocker, ...]:
    """Return what keeps a pod off a node, or a NodePool from making one for it; () if nothing that is judged does.

    Of a NodePool whose machines the catalog does not know, that is one of the reasons: ``node-class``, with the API group of its class.
    """
    wanted = read_wants(pod)
    if not isinstance(place, Pool):
        return of_node(wanted, place, fleet.startup, fleet.delegated)
    unknown = () if place.table is not None else (Blocker("node-class", place.node_class, certain=False),)
    of_pool = (*pool_blockers.of_pool(wanted, place), *unknown)
    return of_pool if any(not blocker.passing for blocker in of_pool) else (*of_pool, *_in_flight(wanted, fleet))


def _in_flight(wanted: Wants, fleet: Fleet) -> Iterator[Blocker]:
    """Yield the first node of Karpenter's that is not initialized and lacks nothing but devices that it should have: Karpenter counts the
    pod as one that runs there, and makes no other node for it (scheduling/scheduler.go ``addToExistingNode``; state/statenode.go
    ``Allocatable``, which replaces amounts of zero alone)."""
    for node in (node for group in fleet.groups if group.nodes[0].expected for node in group.nodes):
        if NODE_POOL in node.labels and node.labels.get(INITIALIZED) != "true":
            blocking = of_node(wanted, node, fleet.startup, fleet.delegated)
            if blocking and all(blocker.kind == "missing" and not blocker.have for blocker in blocking):
                yield Blocker("in-flight", node.name, passing=True)
                return


def outlook(found: Iterable[Blocker]) -> Outlook:
    """Return what these blockers of one place come to."""
    worst: Outlook = "now"
    for blocker in found:
        one: Outlook = "later" if blocker.passing else "never" if blocker.certain else "unknown"
        worst = max(worst, one, key=OUTLOOKS.index)
    return worst


def best(pod: Mapping[str, Any] | Wants, fleet: Fleet) -> Outlook:
    """Return the best outlook of a pod on any place of the cluster.

    Never ``never`` if there may be places that are not known, nor for a pod of another scheduler, whose rules are not
    known; never ``now`` for a pod with claims, of which drivers decide.
    """
    wanted = read_wants(pod)
    result: Outlook = "unknown" if fleet.open_ended or wanted.scheduler != DEFAULT_SCHEDULER else "never"
    for place_outlook in _outlooks(wanted, fleet):
        result = min(result, place_outlook, key=OUTLOOKS.index)
        if result == "now":
            break
    return "unknown" if result == "now" and CLAIMS in wanted.unjudged else result


def _outlooks(wanted: Wants, fleet: Fleet) -> Iterator[Outlook]:
    return (outlook(found) for _, found in _places(wanted, fleet))


def _places(wanted: Wants, fleet: Fleet) -> Iterator[tuple[Place, tuple[Blocker, ...]]]:
    """Yield each place with what is in the way there; of nodes that all have the same reason for ever one alone."""
    for group in fleet.groups:
        for node in group.nodes:
            found = blockers(wanted, node, fleet)
            yield node, found
            if any(not blocker.passing and is_of_all(blocker, group) for blocker in found):
                break
    for pool in fleet.pools:
        yield pool, blockers(wanted, pool, fleet)


def is_of_all(blocker: Blocker, group: NodeGroup) -> bool:
    """Return whether every node of the group has the same reason."""
    return blocker.kind in ("taint", "resource") or (blocker.kind == "label" and blocker.key not in group.own)


def can_ever(pod: Mapping[str, Any] | Wants, fleet: Fleet) -> bool:
    """Return False only if it is certain that nothing in the cluster, as it is made, can run the pod."""
    return best(pod, fleet) != "never"
