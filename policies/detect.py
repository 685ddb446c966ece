"""Which platforms make the GPU nodes of this cluster, and how they offer MIG slices: what ``auto`` stands for in ``--platforms`` and
``--mig-strategy``. How each is known is data of the catalog (``Platform.anchor``, ``node_classes``, the variants' resource names).

Each node and NodePool is seen by itself (``Detector.of_node``, ``of_pool``), so that whoever follows 10,000 of them keeps a counter of
a few ``Seen``; what they mean together is said of those few. The rules:

- A platform counts where a node with GPUs is its, or a NodePool that may make one. That is certain, and is never forgotten while a
  process runs: nodes that are gone were scaled to zero.
- Where nothing is certain, the platforms of all nodes and NodePools count until something is: a cluster that starts without GPU nodes
  has its platform still. This is not kept, or the group of small nodes on which everything began would count for ever.
- Nodes that carry labels of GPUs and of no platform are those of the platform without a cloud (gfd). It never counts otherwise: nodes
  without any label that is known say nothing.
- Where nothing is known the answer is (): placement is then judged and not written.

What is answered depends on what is seen and what was certain, in no order: replicas that see the same say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from policies.catalog import Catalog, Platform
from policies.cluster_facts import ClusterFacts, NodePool

EVERY_MACHINES = frozenset({"type", "family", "category", "generation", "size"})
"""Attributes (``Platform.labels``) that machines without a GPU have too: none of them tells a GPU node by being there."""
NOT_THERE = frozenset({"", "0", "false"})
"""Values by which a label says that there is no GPU: instance-gpu-count of a machine with a fraction of one"""


class Seen(NamedTuple):
    """What one node or NodePool tells. There are at most six for each platform."""

    platform: str = ""
    """"" where none is known"""
    gpus: bool = False
    """that it has GPUs, or may make nodes that do"""
    strategy: str = ""
    """how its slices are offered: ``single``, ``mixed``, or "" where it shows none"""


def home(catalog: Catalog, labels: Mapping[str, str]) -> str:
    """The platform that a node with these labels is of, listed or not; "" where they don't tell."""
    for name, platform in catalog.platforms.items():
        if platform.cloud is not None and platform.anchor in labels and _own(platform, labels):
            return name
    for name, platform in catalog.platforms.items():
        if platform.cloud is None and any(key in labels for key in (platform.anchor, *platform.labels)) and _own(platform, labels):
            return name
    return ""


def newer(catalog: Catalog, labels: Mapping[str, str]) -> Mapping[str, str]:
    """The same labels with those of older keys under the newer ones too, where a node lacks these."""
    more = {key: labels[old] for old, key in catalog.label_aliases.items() if old in labels and key not in labels}
    return {**labels, **more} if more else labels


def _own(platform: Platform, labels: Mapping[str, str]) -> bool:
    if platform.anchor_value and labels.get(platform.anchor) != platform.anchor_value:
        return False
    return not any(key in labels for key in platform.not_with)


class Detector:
    """What the catalog says about labels, made ready (0.2 ms); a node then takes some 10 us."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._gpu_keys = {name: tuple(_gpu_keys(catalog, platform)) for name, platform in catalog.platforms.items()}
        self._type_keys = {name: tuple(k for k, a in p.labels.items() if a == "type") for name, p in catalog.platforms.items()}
        self._types = {name: frozenset(_types(catalog, platform)) for name, platform in catalog.platforms.items()}
        self._product_keys = tuple(_product_keys(catalog))
        self._single = frozenset(_single_suffixes(catalog))
        self._mixed = frozenset(_mixed_keys(catalog))

    def of_node(self, labels: Mapping[str, str]) -> Seen:
        """By its labels; those that ``node_keys`` names are enough."""
        labels = newer(self._catalog, labels)
        name = home(self._catalog, labels)
        return Seen(name, bool(name) and self._has_gpus(name, labels), self._strategy(labels))

    def of_pool(self, pool: NodePool) -> Seen:
        """By its node class. One of an unknown group tells nothing; the nodes that it makes may."""
        for name, platform in self._catalog.platforms.items():
            if pool.node_class in platform.node_classes:
                return Seen(name, all(self._may_have_gpus(platform, *requirement) for requirement in pool.requirements))
        return Seen()

    def all(self, facts: ClusterFacts) -> frozenset[Seen]:
        """Of every node and NodePool."""
        return frozenset((*map(self.of_node, facts.nodes.values()), *map(self.of_pool, facts.nodepools.values())))

    def certain(self, seen: Iterable[Seen], before: Iterable[str] = ()) -> tuple[str, ...]:
        """The platforms of GPUs that are seen and those of ``before``, in the catalog's order: keep it, and give it back next time."""
        names = {*before, *(one.platform for one in seen if one.gpus)}
        return tuple(name for name in self._catalog.platforms if name in names)

    def platforms(self, seen: Iterable[Seen], before: Iterable[str] = ()) -> tuple[str, ...]:
        """The platforms to be in force, in the catalog's order. ``before``: what ``certain`` said last."""
        every = tuple(seen)
        names = {one.platform for one in every}
        return self.certain(every, before) or tuple(name for name in self._catalog.platforms if name in names)

    def _has_gpus(self, platform: str, labels: Mapping[str, str]) -> bool:
        if any(labels.get(key, "") not in NOT_THERE for key in self._gpu_keys[platform]):
            return True
        return any(labels.get(key) in self._types[platform] for key in self._type_keys[platform])

    def _strategy(self, labels: Mapping[str, str]) -> str:
        """GFD's product label names the profile where whole nodes are sliced, and counts each profile where they are not."""
        if not self._mixed.isdisjoint(labels):
            return "mixed"
        products = [labels[key] for key in self._product_keys if key in labels]
        return "single" if any(suffix in product for product in products for suffix in self._single) else ""

    def _may_have_gpus(self, platform: Platform, key: str, operator: str, values: tuple[str, ...]) -> bool:
        if operator == "DoesNotExist":
            return key not in self._gpu_keys[platform.name] and key not in platform.gpu_pools
        wanted = platform.gpu_pools.get(key)
        if wanted is None or operator not in ("In", "NotIn"):
            return True
        return any((value in values) == (operator == "In") for value in wanted)


def platforms(catalog: Catalog, facts: ClusterFacts, before: Iterable[str] = ()) -> tuple[str, ...]:
    """The platforms of the catalog that make the GPU nodes of this cluster, in its order. ``before``: those that were certain."""
    detector = Detector(catalog)
    return detector.platforms(detector.all(facts), before)


def pools_without_gpus(catalog: Catalog, facts: ClusterFacts) -> frozenset[str]:
    """NodePools that are known to make no GPU nodes: of a known node class, with requirements that leave none."""
    if not facts.nodepools:
        return frozenset()
    detector = Detector(catalog)
    found = {name: detector.of_pool(pool) for name, pool in facts.nodepools.items()}
    return frozenset(name for name, seen in found.items() if seen.platform and not seen.gpus)


def mig_strategy(seen: Iterable[Seen], before: str | None = None) -> str:
    """How slices are offered here: ``single`` or ``mixed``.

    By what nodes offer, not by ``nvidia.com/mig.strategy``, which is a setting that every node has. Where both are seen it is
    ``mixed``: a slice asked for by its own name is never taken for a whole GPU. Where neither is, it is what it was (``before``: nodes
    with slices were scaled to zero), at first ``mixed``. What is seen now beats what was, unlike for platforms, of which a cluster has
    several at once: who moves a cluster to the other strategy need not restart anything, and replicas of any age agree.
    """
    found = {one.strategy for one in seen} - {""}
    return found.pop() if len(found) == 1 else "mixed" if found or before is None else before


def node_keys(catalog: Catalog) -> frozenset[str]:
    """The labels of nodes that anything here can read: the catalog's platforms, their ways of sharing, and detection.

    Counts of MIG profiles are those of the catalog's profiles: by one that it does not know alone, ``mixed`` is not told.
    """
    keys = {*_product_keys(catalog), *_mixed_keys(catalog)}
    for platform in catalog.platforms.values():
        keys |= {platform.anchor, *platform.not_with, *platform.labels, *platform.after_boot, *platform.capacity_keys}
    for scheme in catalog.schemes.values():
        keys |= {key for variant in scheme.variants for key in variant.labels}
    return frozenset((*keys, *(old for old, key in catalog.label_aliases.items() if key in keys)))


# --- what the catalog says ---------------------------------------------------------------------------------------------


def _gpu_keys(catalog: Catalog, platform: Platform) -> Iterator[str]:
    """Labels of the platform that only machines with GPUs have, then those of feature discovery."""
    for one in (platform, *(other for other in catalog.platforms.values() if other.cloud is None)):
        labels = {**one.labels, **one.after_boot, **({one.anchor: ""} if one.cloud is None else {})}
        yield from (key for key, attribute in labels.items() if attribute.rpartition(":")[2] not in EVERY_MACHINES)


def _types(catalog: Catalog, platform: Platform) -> Iterator[str]:
    """Instance types with GPUs: what a node shows that has neither feature discovery nor a label of its cloud's for GPUs."""
    for machine in catalog.machines:
        if machine.cloud == platform.cloud and machine.type is not None and platform.name not in machine.not_on:
            yield f"{platform.type_prefix}{machine.type}"


def _product_keys(catalog: Catalog) -> Iterator[str]:
    for platform in catalog.platforms.values():
        for key, attribute in (*platform.labels.items(), *platform.after_boot.items()):
            if attribute.rpartition(":")[2] == "product":
                yield key


def _single_suffixes(catalog: Catalog) -> Iterator[str]:
    """What is appended to a product where a whole node is sliced: ``-MIG-``, also in -MIG-INVALID, which is one set wrong."""
    for scheme in catalog.schemes.values():
        yield from (v.suffix.partition("{profile}")[0] for v in scheme.variants if v.strategy == "single" and "{profile}" in v.suffix)


def _mixed_keys(catalog: Catalog) -> Iterator[str]:
    """``nvidia.com/mig-1g.5gb.count``: GFD labels each profile by its resource name (k8s-device-plugin internal/lm/mig-strategy.go)."""
    profiles = {profile.name.replace("+", ".") for gpu in catalog.gpus for profile in gpu.mig}
    for scheme in catalog.schemes.values():
        for name in (v.resource for v in scheme.variants if v.sharing == "MIG" and v.strategy == "mixed" and v.resource):
            yield from (f"{name.replace('{profile}', profile)}.count" for profile in profiles)
