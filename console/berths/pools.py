"""NodePools: what they may still make, and those that have no node yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from catalog import Catalog
from catalog.prices import Prices
from console.berths.groups import GroupKey
from kube.labels import CAPACITY_TYPE
from kube.taints import Taint
from policies.offers.table import Host
from policies.placement.pool_blockers import most_devices
from policies.placement.pools import Pool

POOL = "NodePool"
MOST_MACHINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyPool:
    """A NodePool without a node that could make machines with devices."""

    pool: Pool
    machines: Sequence[tuple[Host, float | None]]
    """What it may create, with its on-demand price an hour: the cheapest known first."""
    more: int
    most: int
    """Devices of its largest machine."""
    capacity: Sequence[str]
    """``spot``, ``on-demand`` ...; () if all."""

    @property
    def key(self) -> GroupKey:
        return GroupKey(POOL, self.pool.name, "")

    @property
    def taints(self) -> Sequence[tuple[Taint, int]]:
        """Those of its nodes; none has them yet."""
        return [(taint, 0) for taint in self.pool.taints]


def limits(pool: Pool, catalog: Catalog) -> list[tuple[str, str, str, str]]:
    """Return (resource, limit, created, remaining) of the limits on devices and on nodes: accelerators first."""
    names = sorted(pool.limits, key=lambda name: (catalog.resource(name) is None, name))
    found = []
    for name in names:
        left = pool.left(name)
        made = pool.made.get(name)
        found.append(
            (
                name,
                _written(name, pool.limits[name]),
                "–" if made is None else _written(name, made),
                "–" if left is None or not pool.made else _written(name, max(left, Fraction(0))),
            )
        )
    return found


def _written(name: str, amount: Fraction) -> str:
    if name in ("memory", "ephemeral-storage"):
        return f"{float(amount / 2**30):,.0f}Gi"
    return f"{float(amount):,.15g}"


def empty(pools: Iterable[Pool], with_nodes: Iterable[str], prices: Prices) -> list[EmptyPool]:
    """Return the NodePools that have no node and could make some with devices, by name. ``with_nodes``: names of the others."""
    known = frozenset(with_nodes)
    return [found for pool in sorted(pools, key=lambda one: one.name) if pool.name not in known and (found := _empty(pool, prices))]


def _empty(pool: Pool, prices: Prices) -> EmptyPool | None:
    devices = most_devices(pool)
    if not devices or pool.static or pool.table is None:
        return None
    machines: dict[str, tuple[Host, float | None]] = {}
    for offer in pool.table.offers_in(pool.rows & pool.table.by_sharing.get("Exclusive", 0) & ~pool.table.unknown):
        if offer.resource in devices and offer.host.count and not offer.host.uncounted and offer.host.name not in machines:
            price = prices.machines.get(offer.host.name)
            machines[offer.host.name] = offer.host, price[0] if price is not None else None
    if not machines:
        return None
    ordered = sorted(machines.values(), key=lambda priced: (priced[1] is None, priced[1] or 0.0, priced[0].name))
    capacity = pool.requirements.get(CAPACITY_TYPE)
    return EmptyPool(
        pool=pool,
        machines=ordered[:MOST_MACHINES],
        more=max(0, len(ordered) - MOST_MACHINES),
        most=max(devices.values()),
        capacity=sorted(capacity.values) if capacity is not None and not capacity.complement else (),
    )
