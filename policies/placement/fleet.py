"""All places of a cluster: its nodes in groups, and its NodePools; and whether a pod can ever run on any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from catalog import Catalog
from catalog.resources import OF_A_CLASS
from kube.karpenter import read_node_class
from kube.labels import CAST_AI, EKS_GROUP, SCALED_BY_CLOUD
from kube.node import Node, NodeGroup, Occupant, group_nodes, nodes
from kube.pod import DEFAULT_SCHEDULER
from kube.scheduling import CLAIMS, Blocker, Wants, of_node, read_wants, wants
from kube.tree import map_at, text_of
from policies.facts import cluster_facts
from policies.offers.table import Table
from policies.placement import pool_blockers
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Made by ``fleet_of``."""

    groups: tuple[NodeGroup, ...] = ()
    pools: tuple[Pool, ...] = ()
    startup: frozenset[str] = frozenset()
    """Keys of taints that nodes of the NodePools have only while they start."""
    delegated: frozenset[str] = frozenset()
    """Resources that a DeviceClass offers: a node need not list them."""
    open_ended: bool = False
    """True if there may be places that are not known here: nodes could not be read, or another autoscaler makes some."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(node for group in self.groups for node in group.nodes)

    def unchecked(self, pod: Wants) -> frozenset[Unchecked]:
        """Return what was not checked of the places that have nothing against the pod; nothing if one of them was checked whole."""
        missed: frozenset[Unchecked] = frozenset()
        places: tuple[Place, ...] = (*self.nodes, *self.pools)
        for place in places:
            if not blockers(pod, place, self):
                left_out = _unchecked_of(pod, place)
                if not left_out:
                    return frozenset()
                missed |= left_out
        return missed


def _unchecked_of(pod: Wants, place: Place) -> frozenset[Unchecked]:
    if isinstance(place, Pool):
        return pool_blockers.unchecked_of_pool(pod, place)
    return frozenset({"podsOnNodes"} if place.used is None else ())


def fleet_of(
    objects: Iterable[Mapping[str, Any]],
    *,
    catalog: Catalog,
    tables: Mapping[str, Table],
    occupants: Iterable[Occupant] | None = None,
    open_ended: bool | None = None,
) -> Fleet:
    """Return the places in these objects of ``KINDS``; others are passed over. No cluster is without DaemonSets: where none is there, they
    are not known.

    ``occupants``: what is bound to the nodes (``occupant`` of every pod); None if that is not known, and then nothing is
    ever short of ``capacity``. ``open_ended``: None to find it by the labels of nodes.
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
    found = tuple(nodes(by_kind["Node"], occupants, startup))
    if open_ended is None:
        managed = SCALED_BY_CLOUD if pools else SCALED_BY_CLOUD + _AUTOSCALED_WITHOUT_KARPENTER
        open_ended = any(key in node.labels for node in found for key in managed)
    offers = [entry for value in by_kind["DeviceClass"] for entry in cluster_facts.read_facts("DeviceClass", value)]
    delegated = {name for entry in offers for name in (entry.value.extended, f"{OF_A_CLASS}{entry.key}") if name}
    return Fleet(groups=group_nodes(found), pools=pools, startup=startup, delegated=frozenset(delegated), open_ended=open_ended)


def blockers(pod: Mapping[str, Any] | Wants, place: Place, fleet: Fleet) -> tuple[Blocker, ...]:
    """Return what keeps a pod off a node, or a NodePool from making one for it; () if nothing that is judged does.

    Of a NodePool whose machines the catalog does not know, that is one of the reasons: ``node-class``, with the API group of its class.
    """
    wanted = read_wants(pod)
    if not isinstance(place, Pool):
        return of_node(wanted, place, fleet.startup, fleet.delegated)
    unknown = () if place.table is not None else (Blocker("node-class", place.node_class, certain=False),)
    return (*pool_blockers.of_pool(wanted, place), *unknown)


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
    for group in fleet.groups:
        for node in group.nodes:
            found = blockers(wanted, node, fleet)
            yield outlook(found)
            if any(not blocker.passing and is_of_all(blocker, group) for blocker in found):
                break
    for pool in fleet.pools:
        yield outlook(blockers(wanted, pool, fleet))


def is_of_all(blocker: Blocker, group: NodeGroup) -> bool:
    """Return whether every node of the group has the same reason."""
    return blocker.kind in ("taint", "resource") or (blocker.kind == "label" and blocker.key not in group.own)


def can_ever(pod: Mapping[str, Any] | Wants, fleet: Fleet) -> bool:
    """Return False only if it is certain that nothing in the cluster, as it is made, can run the pod."""
    return best(pod, fleet) != "never"
