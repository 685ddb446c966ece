"""How the devices of each node are offered: by a device plugin, by a DRA driver, or by both at once.

A device plugin counts devices in the node's allocatable, a DRA driver lists them in ResourceSlices, and kube-scheduler takes a request by
resource name to DRA only where the node has none of that name (k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go).
So a GPU that both offer is given to two pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from catalog import Catalog
from policies.facts.cluster_facts import ClusterFacts

Mode = Literal["device-plugin", "dra", "both"]
Published = Mapping[str, Mapping[str, int]]
"""Node -> DRA driver -> the devices that it publishes there."""


class AdvertisedTwice(NamedTuple):
    """Devices of one driver that a device plugin offers too."""

    driver: str
    resources: tuple[str, ...]
    """The resource names of the device plugin, sorted."""
    node: str
    """The first of the nodes by name."""


class Advertised(NamedTuple):
    """How the devices of a cluster's nodes are offered."""

    nodes: tuple[tuple[str, Mode, int], ...] = ()
    """(vendor, mode, number of nodes), sorted."""
    twice: tuple[AdvertisedTwice, ...] = ()
    """Sorted by driver."""


NOT_KNOWN = Advertised()


def published(facts: ClusterFacts) -> dict[str, dict[str, int]]:
    """Return what DRA drivers publish for single nodes. Of a pool, only slices of the newest generation count, as for the allocator
    (k8s.io/dynamic-resource-allocation structured, GatherPools)."""
    newest: dict[tuple[str, str], int] = {}
    for one in facts.slices.values():
        pool = one.driver, one.pool
        newest[pool] = max(newest.get(pool, one.generation), one.generation)
    found: dict[str, dict[str, int]] = {}
    for one in facts.slices.values():
        if one.node and one.driver and one.generation == newest[one.driver, one.pool]:
            of_node = found.setdefault(one.node, {})
            of_node[one.driver] = of_node.get(one.driver, 0) + one.devices
    return found


def offered_beside(driver: str, resources: Iterable[str], catalog: Catalog) -> tuple[str, ...]:
    """Return those of a node's resource names that stand for devices of the driver's vendor, sorted."""
    vendor = catalog.dra_drivers.get(driver, "")
    return tuple(sorted(name for name in resources if vendor and _vendor(name, catalog) == vendor))


def advertised(facts: ClusterFacts, catalog: Catalog) -> Advertised:
    """Return how the nodes' devices are offered: 10 ms for 10,000 nodes, of which 2,000 have GPUs."""
    by_driver = published(facts)
    counts: Counter[tuple[str, Mode]] = Counter()
    vendors: dict[tuple[str, ...], frozenset[str]] = {}
    beside: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
    twice: dict[str, tuple[str, set[str]]] = {}
    for node, offering in facts.offerings.items():
        here = by_driver.get(node, {})
        if not (here or offering.resources):
            continue
        if offering.resources not in vendors:
            vendors[offering.resources] = frozenset(_vendor(name, catalog) for name in offering.resources) - {""}
        plugged = vendors[offering.resources]
        drivers = [driver for driver, count in here.items() if count and driver in catalog.dra_drivers]
        of_dra = {catalog.dra_drivers[driver] for driver in drivers}
        for vendor in plugged | of_dra:
            counts[vendor, "both" if vendor in plugged and vendor in of_dra else "dra" if vendor in of_dra else "device-plugin"] += 1
        for driver in drivers:
            if (driver, offering.resources) not in beside:
                beside[driver, offering.resources] = offered_beside(driver, offering.resources, catalog)
            if names := beside[driver, offering.resources]:
                first, every = twice.get(driver, (node, set()))
                twice[driver] = min(first, node), every.union(names)
    return Advertised(
        nodes=tuple((vendor, mode, count) for (vendor, mode), count in sorted(counts.items())),
        twice=tuple(AdvertisedTwice(driver, tuple(sorted(names)), node) for driver, (node, names) in sorted(twice.items())),
    )


def _vendor(name: str, catalog: Catalog) -> str:
    """Return the vendor of a resource of whole devices or slices; "" for any other."""
    known = catalog.resource(name)
    return known.vendor if known is not None and known.kind != "dra" and catalog.measure(name) is None else ""
