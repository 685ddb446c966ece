"""Kinds of devices that a cluster has or may make, each with the labels by which a pod asks for it and with what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from analysis.scan.machines import Machines, split_product
from catalog import Catalog, Gpu, Resource
from catalog.platforms import Capacity
from catalog.prices import PRODUCT_KEYS, Prices
from kube.labels import CAPACITY_TYPE, INSTANCE_TYPE
from kube.node import Node, NodeGroup
from policies.facts.platform_detection import home
from policies.offers.table import Offer, Table
from policies.placement.fleet import Fleet
from policies.placement.pools import Pool

KINDS = ("gpu", "shared", "mig")
"""Kinds of resources that one may be asked for in place of another: partitions, parts and claims have sizes of their own."""
Shape = Literal["whole", "slice", "shared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetDevice:
    """What a pod gets for one unit of a resource in one place."""

    model: str
    """As the catalog names it; "" if labels do not tell."""
    shape: Shape
    memory_gb: int | None
    """Nominal, of what the pod gets: of a slice the slice's; None if it is not known, or is shared."""
    usd: float | None
    """What one unit costs an hour on demand: of a slice its least part of the device; None if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixTarget:
    """One kind of device in one kind of place."""

    place: NodeGroup | Pool
    resource: str
    device: TargetDevice
    capacity: Capacity | None
    """None if the place does not tell."""
    labels: Mapping[str, str]
    """What a nodeSelector says so that a pod lands on such devices."""


class FleetOffers:
    """Reads what the places of a fleet offer."""

    def __init__(self, catalog: Catalog, prices: Prices) -> None:
        self._catalog = catalog
        self._prices = prices
        self._machines = Machines(catalog)
        self._profiles = {name: profile for gpu in reversed(catalog.gpus) for name, profile in gpu.slices.items()}
        self._capacities = {
            label: name for one in catalog.platforms.values() for name, labels in one.capacity.items() for label in labels.items()
        }

    def targets(self, fleet: Fleet, vendor: str) -> Iterator[FixTarget]:
        """Yield every kind of device of a vendor that the fleet has, or that its NodePools may make."""
        for group in fleet.groups:
            for name in sorted(group.allocatable):
                known = self._catalog.resource(name)
                if known is not None and known.vendor == vendor and known.kind in KINDS and group.allocatable[name] > 0:
                    yield self._of_group(group, known)
        for pool in fleet.pools:
            if pool.table is not None and not pool.without_gpus and not pool.static:
                yield from self._of_pool(pool, pool.table, vendor)

    def device(self, labels: Mapping[str, str], resource: Resource) -> TargetDevice:
        """Return what one unit of a resource is on a node with these labels."""
        gpu = self._machines.gpu(labels)
        _, profile, shared = split_product(next((labels[key] for key in PRODUCT_KEYS if key in labels), ""))
        name = resource.profile or "" if resource.kind == "mig" else profile
        return self._device(gpu, name, shared=shared or resource.kind == "shared", usd=self._prices.of_device(labels))

    def capacity(self, labels: Mapping[str, str]) -> Capacity | None:
        """Return the capacity type of a node, where its labels tell."""
        return next((self._capacities[item] for item in labels.items() if item in self._capacities), None)

    def _device(self, gpu: Gpu | None, profile: str, *, shared: bool, usd: float | None) -> TargetDevice:
        model = "" if gpu is None else gpu.model
        if profile:
            found = (gpu.slices if gpu is not None else {}).get(profile, self._profiles.get(profile))
            share = self._catalog.slice_shares.get(profile)
            cost = None if usd is None or share is None else usd * float(share[0])
            return TargetDevice(model=model, shape="slice", memory_gb=None if found is None else found.memory_gb, usd=cost)
        if shared:
            return TargetDevice(model=model, shape="shared", memory_gb=None, usd=usd)
        return TargetDevice(model=model, shape="whole", memory_gb=None if gpu is None else gpu.memory_gb, usd=usd)

    def _of_group(self, group: NodeGroup, known: Resource) -> FixTarget:
        labels = group.nodes[0].labels
        pin = {key: labels[key] for key in self._pinned(labels)}
        capacity = next(((item, self._capacities[item]) for item in group.labels.items() if item in self._capacities), None)
        if capacity is not None:
            pin |= dict((capacity[0],))
        return FixTarget(
            place=group,
            resource=known.name,
            device=self.device(labels, known),
            capacity=None if capacity is None else capacity[1],
            labels=pin,
        )

    def _pinned(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """Return the labels of a node that tell its model: those that its platform knows before a node exists come first."""
        platform = self._catalog.platforms.get(home(self._catalog, labels))
        keys = platform.machine_keys if platform is not None else ()
        for together in (*keys[:1], (INSTANCE_TYPE,), *((key,) for key in PRODUCT_KEYS)):
            if all(labels.get(key) for key in together):
                return tuple(together)
        return ()

    def _of_pool(self, pool: Pool, table: Table, vendor: str) -> Iterator[FixTarget]:
        whole = self._catalog.whole.get(vendor, "")
        made: dict[str, list[Offer]] = {}
        for offer in table.offers_in(pool.rows & table.by_resource.get(whole, 0) & table.by_sharing.get("Exclusive", 0)):
            if offer.host.gpu is not None and offer.template is None:
                made.setdefault(offer.host.gpu.model, []).append(offer)
        for model, labels in sorted(_told_by(table, made).items()):
            gpu = made[model][0].host.gpu
            for capacity in _capacities(pool, table):
                pin = labels if capacity is None else {**labels, **table.platform.capacity[capacity]}
                yield FixTarget(
                    place=pool,
                    resource=whole,
                    device=self._device(gpu, "", shared=False, usd=self._prices.models.get(model)),
                    capacity=capacity,
                    labels=pin,
                )


def _told_by(table: Table, made: Mapping[str, list[Offer]]) -> dict[str, dict[str, str]]:
    """Return model -> the labels that all its machines have and that no other model's have; models without such are left out."""
    found: dict[str, dict[str, str]] = {}
    for keys in table.platform.machine_keys:
        values = {model: {tuple(_single(offer, key) for key in keys) for offer in offers} for model, offers in made.items()}
        for model, own in values.items():
            one = next(iter(own))
            alone = len(own) == 1 and "" not in one and not any(one in others for name, others in values.items() if name != model)
            if alone and model not in found:
                found[model] = dict(zip(keys, one, strict=True))
    return found


def _single(offer: Offer, key: str) -> str:
    """Return the one value that a label has on such a node; "" if it may have several, or none."""
    possible = offer.labels.get(key, ())
    return possible[0] or "" if len(possible) == 1 and possible[0] not in ("*", "?") else ""


def _capacities(pool: Pool, table: Table) -> list[Capacity | None]:
    """Return the capacity types that a NodePool may buy; None for the one that Karpenter chooses where it does not say."""
    own = pool.requirements.get(CAPACITY_TYPE)
    if own is None or own.complement:
        return [None]
    return [name for name, labels in table.platform.capacity.items() if labels.get(CAPACITY_TYPE) in own.values]


def nodes_of(target: FixTarget) -> tuple[Node, ...]:
    """Return the nodes of a target; () for a NodePool."""
    return target.place.nodes if isinstance(target.place, NodeGroup) else ()
