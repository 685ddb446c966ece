"""Where a pod would run, how soon, and what its devices cost there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from analysis.fixes.targets import FleetOffers, TargetDevice
from catalog import Resource
from catalog.platforms import Capacity
from catalog.prices import Prices
from kube.labels import INSTANCE_TYPE
from kube.node import Node
from kube.scheduling import Wants
from policies.placement.fleet import Fleet, blockers, is_of_all, outlook
from policies.placement.pool_blockers import machines
from policies.placement.pools import Pool

Soon = Literal["now", "made", "later", "never"]
"""``now``: a node has it free. ``made``: Karpenter makes a node for it. ``later``: it waits for what may end by itself. ``never``:
neither, as far as the cluster is known."""
SOON: tuple[Soon, ...] = ("now", "made", "later", "never")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a pod would run as it is admitted, and what its devices cost there."""

    soon: Soon
    nodes: tuple[str, ...] = ()
    """For ``now`` those that take it; for ``later`` those that may."""
    pool: str = ""
    """For ``made`` the NodePool."""
    machine: str = ""
    """The cheapest machine known that the NodePool then makes."""
    machine_usd: float | None = None
    """What that machine costs an hour on demand."""
    device: TargetDevice | None = None
    """In the one of these places that gives least memory; None if the pod asks for devices of several kinds, or none is known."""
    capacity: Capacity | None = None
    usd: float | None = None
    """What the pod's devices cost an hour on demand, in the dearest of these places; None if one of the prices is not known."""


class Placer:
    """Finds placements in one fleet."""

    def __init__(self, fleet: Fleet, prices: Prices, places: FleetOffers) -> None:
        self._fleet = fleet
        self._prices = prices
        self._places = places

    def of(self, wanted: Wants, asked: Resource) -> Placement:
        """Return where the whole fleet runs a pod soonest."""
        now: list[Node] = []
        later: list[Node] = []
        for node in _open(wanted, self._fleet):
            (later if blockers(wanted, node, self._fleet) else now).append(node)
        if now:
            return self._on("now", now, asked, wanted)
        made = [pool for pool in self._fleet.pools if pool.table is not None and not blockers(wanted, pool, self._fleet)]
        if made:
            return self._bought(made, asked, wanted)
        waits = any(outlook(blockers(wanted, pool, self._fleet)) == "later" for pool in self._fleet.pools)
        return self._on("later" if later or waits else "never", later, asked, wanted)

    def _on(self, soon: Soon, nodes: Sequence[Node], asked: Resource, wanted: Wants) -> Placement:
        each = [self._places.device(node.labels, asked) for node in nodes]
        usd = [one.usd * wanted.requests[asked.name] for one in each if one.usd is not None]
        smallest = min(each, key=lambda one: (one.memory_gb or 0, one.model), default=None)
        capacities = {self._places.capacity(node.labels) for node in nodes}
        return Placement(
            soon=soon,
            nodes=tuple(node.name for node in nodes),
            device=smallest,
            capacity=capacities.pop() if len(capacities) == 1 else None,
            usd=max(usd) if usd and len(usd) == len(each) else None,
        )

    def _bought(self, pools: Sequence[Pool], asked: Resource, wanted: Wants) -> Placement:
        """Return what Karpenter buys: by the first NodePool in its order, and of its machines the cheapest."""
        pool = pools[0]
        priced = [(found[0], name) for name in machines(wanted, pool) if (found := self._prices.machines.get(name))]
        usd, machine = min(priced, default=(None, ""))
        labels = {INSTANCE_TYPE: machine}
        device = self._places.device(labels, asked)
        if usd is None:
            return Placement(soon="made", pool=pool.name)
        cost = None if device.usd is None else device.usd * wanted.requests[asked.name]
        return Placement(soon="made", pool=pool.name, machine=machine, machine_usd=usd, device=device, usd=cost)


def better(one: Placement, than: Placement) -> bool:
    """Return whether a placement is sooner or cheaper; spot at the same price on demand is cheaper."""
    if SOON.index(one.soon) < SOON.index(than.soon):
        return True
    if one.usd is None or than.usd is None:
        return False
    return one.usd < than.usd or (one.usd == than.usd and one.capacity == "spot" and than.capacity != "spot")


def _open(wanted: Wants, fleet: Fleet) -> Iterator[Node]:
    """Yield the nodes that take the pod, or may once something ends; of groups that never do one node alone is looked at."""
    for group in fleet.groups:
        for node in group.nodes:
            found = blockers(wanted, node, fleet)
            if all(blocker.passing for blocker in found):
                yield node
            elif any(is_of_all(blocker, group) for blocker in found):
                break
