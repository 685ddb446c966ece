"""Detect which platforms make the GPU nodes of this cluster, and how they offer MIG slices: the values of
``auto`` in ``--platforms`` and ``--mig-strategy``. How each platform is recognised is data of the catalog
(``Platform.anchor``, ``node_classes``, the variants' resource names).

Each node and NodePool yields one ``DetectedPlatform`` by itself (``Detector.of_node``, ``of_pool``), so that a caller
with 10,000 of them only keeps a counter of a few different ones. The rules that combine these:

- A platform is certain if it has a node with GPUs, or a NodePool that may make one. It stays so for as long
  as the process runs: nodes that are gone were scaled to zero.
- While nothing is certain, the platforms of all nodes and NodePools are in force: a cluster that starts
  without GPU nodes has its platform all the same. This is not remembered, or the small nodes on which a
  cluster was started would count for ever.
- Nodes with labels of GPUs but of no platform belong to the platform without a cloud (gfd), which is in force
  for no other reason: nodes without known labels tell nothing.
- If nothing is known the result is (): placement is then checked, and not written.

The result depends on what is seen and what was certain before, in no order: replicas that see the same
objects agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from catalog import Catalog, Platform
from policies.facts.cluster_facts import ClusterFacts, NodePool

EVERY_MACHINES = frozenset({"type", "family", "category", "generation", "size"})
"""Attributes (``Platform.labels``) that machines without a GPU have too: the presence of such a label does
not make a GPU node."""
NOT_THERE = frozenset({"", "0", "false"})
"""Label values that mean no GPU, such as instance-gpu-count of a machine with a fraction of one."""


class DetectedPlatform(NamedTuple):
    """The result for one node or NodePool. There are at most six different ones for each platform."""

    platform: str = ""
    """The name of the platform; "" if unknown."""
    gpus: bool = False
    """True if the node has GPUs, or the NodePool may make nodes that do."""
    strategy: str = ""
    """How its MIG slices are offered: ``single``, ``mixed``, or "" if it shows none."""


def home(catalog: Catalog, labels: Mapping[str, str]) -> str:
    """Return the platform of a node with these labels, whether or not it is in force; "" if the labels do not
    tell."""
    for name, platform in catalog.platforms.items():
        if platform.cloud is not None and platform.anchor in labels and _own(platform, labels):
            return name
    for name, platform in catalog.platforms.items():
        if platform.cloud is None and any(key in labels for key in (platform.anchor, *platform.labels)) and _own(platform, labels):
            return name
    return ""


def newer(catalog: Catalog, labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return the labels, with the values of older keys also under the newer keys that the node lacks."""
    more = {key: labels[old] for old, key in catalog.label_aliases.items() if old in labels and key not in labels}
    return {**labels, **more} if more else labels


def _own(platform: Platform, labels: Mapping[str, str]) -> bool:
    if platform.anchor_value and labels.get(platform.anchor) != platform.anchor_value:
        return False
    return not any(key in labels for key in platform.not_with)


class Detector:
    """The catalog's knowledge of labels, prepared for look-ups (0.2 ms); a node then takes some 10 us."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._gpu_keys = {name: tuple(_gpu_keys(catalog, platform)) for name, platform in catalog.platforms.items()}
        self._type_keys = {name: tuple(k for k, a in p.labels.items() if a == "type") for name, p in catalog.platforms.items()}
        self._types = {name: frozenset(_types(catalog, platform)) for name, platform in catalog.platforms.items()}
        self._product_keys = tuple(_product_keys(catalog))
        self._single = frozenset(_single_suffixes(catalog))
        self._mixed = frozenset(_mixed_keys(catalog))

    def of_node(self, labels: Mapping[str, str]) -> DetectedPlatform:
        """Return the result for a node, by its labels; those of ``node_keys`` are enough."""
        labels = newer(self._catalog, labels)
        name = home(self._catalog, labels)
        return DetectedPlatform(name, bool(name) and self._has_gpus(name, labels), self._strategy(labels))

    def of_pool(self, pool: NodePool) -> DetectedPlatform:
        """Return the result for a NodePool, by its node class; where that has no API group, as v1beta1 allows, by the keys of its
        requirements. One of an unknown group tells nothing; the nodes that it makes may."""
        groups = {pool.node_class} if pool.node_class else {key.partition("/")[0] for key, _, _ in pool.requirements}
        for name, platform in self._catalog.platforms.items():
            if not groups.isdisjoint(platform.node_classes):
                return DetectedPlatform(name, all(self._may_have_gpus(platform, *requirement) for requirement in pool.requirements))
        return DetectedPlatform()

    def all(self, facts: ClusterFacts) -> frozenset[DetectedPlatform]:
        """Return the results for all nodes and NodePools."""
        return frozenset((*map(self.of_node, facts.nodes.values()), *map(self.of_pool, facts.nodepools.values())))

    def certain(self, seen: Iterable[DetectedPlatform], before: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the platforms with GPUs among ``seen``, and those of ``before``, in the catalog's order. The
        caller stores the result and passes it as ``before`` next time."""
        names = {*before, *(one.platform for one in seen if one.gpus)}
        return tuple(name for name in self._catalog.platforms if name in names)

    def platforms(self, seen: Iterable[DetectedPlatform], before: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the platforms to be in force, in the catalog's order. ``before``: the last result of
        ``certain``."""
        every = tuple(seen)
        names = {one.platform for one in every}
        return self.certain(every, before) or tuple(name for name in self._catalog.platforms if name in names)

    def _has_gpus(self, platform: str, labels: Mapping[str, str]) -> bool:
        if any(labels.get(key, "") not in NOT_THERE for key in self._gpu_keys[platform]):
            return True
        return any(labels.get(key) in self._types[platform] for key in self._type_keys[platform])

    def _strategy(self, labels: Mapping[str, str]) -> str:
        """Return the MIG strategy. GFD's product label contains the profile if the whole node is sliced;
        otherwise there is a count for each profile."""
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


def detected(catalog: Catalog, facts: ClusterFacts) -> tuple[tuple[str, ...], str]:
    """Return the catalog's platforms that make the GPU nodes of these facts, in its order, and the MIG
    strategy. Nothing is remembered between calls."""
    detector = Detector(catalog)
    seen = detector.all(facts)
    return detector.platforms(seen), mig_strategy(seen)


def pools_without_gpus(catalog: Catalog, facts: ClusterFacts) -> frozenset[str]:
    """Return the NodePools that are known to make no GPU nodes: those of a known node class whose
    requirements exclude them."""
    if not facts.nodepools:
        return frozenset()
    detector = Detector(catalog)
    found = {name: detector.of_pool(pool) for name, pool in facts.nodepools.items()}
    return frozenset(name for name, seen in found.items() if seen.platform and not seen.gpus)


def mig_strategy(seen: Iterable[DetectedPlatform], before: str | None = None) -> str:
    """Return how MIG slices are offered: ``single`` or ``mixed``.

    It depends on the resources that nodes offer, not on ``nvidia.com/mig.strategy``, a setting that every
    node has. If both are seen, the strategy is ``mixed``, so that a slice requested by its own name is never
    taken for a whole GPU. If neither is seen, it stays as it was (``before``: nodes with slices were scaled
    to zero), and is ``mixed`` at first. Unlike for platforms, of which a cluster has several at once, what is
    seen now takes precedence over the past: a cluster can be moved to the other strategy without a restart,
    and replicas of any age agree.
    """
    found = {one.strategy for one in seen} - {""}
    return found.pop() if len(found) == 1 else "mixed" if found or before is None else before


def node_keys(catalog: Catalog) -> frozenset[str]:
    """Return the node labels that are read: those of the catalog's platforms, of their ways of sharing, and
    of detection.

    Only the counts of MIG profiles in the catalog are included: a node that offers no other profile than
    unknown ones does not show ``mixed``.
    """
    keys = {*_product_keys(catalog), *_mixed_keys(catalog)}
    for platform in catalog.platforms.values():
        keys |= {platform.anchor, *platform.not_with, *platform.labels, *platform.after_boot, *platform.capacity_keys}
    for scheme in catalog.schemes.values():
        keys |= {key for variant in scheme.variants for key in variant.labels}
    return frozenset((*keys, *(old for old, key in catalog.label_aliases.items() if key in keys)))


# --- what the catalog says ----------------------------------------------------------------------------------


def _gpu_keys(catalog: Catalog, platform: Platform) -> Iterator[str]:
    """Yield the labels of the platform that only machines with GPUs have, then those of GPU Feature
    Discovery."""
    for one in (platform, *(other for other in catalog.platforms.values() if other.cloud is None)):
        labels = {**one.labels, **one.after_boot, **({one.anchor: ""} if one.cloud is None else {})}
        yield from (key for key, attribute in labels.items() if attribute.rpartition(":")[2] not in EVERY_MACHINES)


def _types(catalog: Catalog, platform: Platform) -> Iterator[str]:
    """Yield the platform's instance types with GPUs, by which a node is recognised that has neither labels of
    GPU Feature Discovery nor GPU labels of its cloud."""
    for machine in catalog.machines:
        if machine.cloud == platform.cloud and machine.type is not None and platform.name not in machine.not_on:
            yield f"{platform.type_prefix}{machine.type}"


def _product_keys(catalog: Catalog) -> Iterator[str]:
    for platform in catalog.platforms.values():
        for key, attribute in (*platform.labels.items(), *platform.after_boot.items()):
            if attribute.rpartition(":")[2] == "product":
                yield key


def _single_suffixes(catalog: Catalog) -> Iterator[str]:
    """Yield the suffixes of the product label on nodes that are sliced as a whole: ``-MIG-``. Misconfigured
    nodes have it too, as ``-MIG-INVALID``."""
    for scheme in catalog.schemes.values():
        yield from (v.suffix.partition("{profile}")[0] for v in scheme.variants if v.strategy == "single" and "{profile}" in v.suffix)


def _mixed_keys(catalog: Catalog) -> Iterator[str]:
    """Yield ``nvidia.com/mig-1g.5gb.count`` and the like: GFD labels each profile by its resource name
    (k8s-device-plugin internal/lm/mig-strategy.go)."""
    profiles = {profile.spelling for gpu in catalog.gpus for profile in gpu.mig}
    for scheme in catalog.schemes.values():
        for name in (v.resource for v in scheme.variants if v.sharing == "MIG" and v.strategy == "mixed" and v.resource):
            yield from (f"{name.replace('{profile}', profile)}.count" for profile in profiles)
