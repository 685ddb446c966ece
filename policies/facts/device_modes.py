"""Device modes: how each node offers its devices (by a device plugin, by a DRA driver, or by both at once), and which labels that nodes
are selected by nobody maintains.

A device plugin counts devices in the node's allocatable, a DRA driver lists them in ResourceSlices, and kube-scheduler takes a request by
resource name to DRA only where the node has none of that name (k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go).
So a GPU that both offer is given to two pods.

GPU Feature Discovery writes the labels of NVIDIA's GPUs. The GPU Operator runs it under a ClusterPolicy (unless that says no) and never
under a GPUCluster, which may not exist beside one (NVIDIA/gpu-operator controllers/gpucluster_controller.go): nodes have no such labels
then, or those that were left behind by what ran before. Somebody may run it without the operator, so it is only taken as gone where
every node shows that: by having no label of it, or labels of a run that began before the GPUCluster was made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from catalog import Catalog
from policies.facts import platform_detection
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.offered_devices import Offering

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
    for device_slice in facts.slices.values():
        pool = device_slice.driver, device_slice.pool
        newest[pool] = max(newest.get(pool, device_slice.generation), device_slice.generation)
    devices: dict[str, dict[str, int]] = {}
    for device_slice in facts.slices.values():
        if device_slice.node and device_slice.driver and device_slice.generation == newest[device_slice.driver, device_slice.pool]:
            of_node = devices.setdefault(device_slice.node, {})
            of_node[device_slice.driver] = of_node.get(device_slice.driver, 0) + device_slice.devices
    return devices


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


_NVIDIA = "nvidia.com/gpu."


def stale_since(facts: ClusterFacts) -> int | None:
    """Return when a GPUCluster took the place of a ClusterPolicy, in Unix seconds: labels of an earlier run of GPU Feature Discovery
    are left behind. None if that is not known."""
    if any(kind == "ClusterPolicy" for kind, _ in facts.stacks):
        return None
    return min((stack.created for stack in facts.stacks.values() if stack.created is not None), default=None)


def is_stale(offering: Offering, since: int | None) -> bool:
    """Return whether the labels of a node are left behind."""
    return offering.labelled and since is not None and offering.started is not None and offering.started < since


def undiscovered(facts: ClusterFacts) -> bool:
    """Return whether it is certain that no node has its labels by a GPU Feature Discovery that runs."""
    if not facts.stacks or any(stack.discovers for stack in facts.stacks.values()):
        return False
    since = stale_since(facts)
    if since is None and not any(kind == "ClusterPolicy" for kind, _ in facts.stacks):
        return False
    nodes = [offering for offering in facts.offerings.values() if offering.gpus or offering.labelled]
    return bool(nodes) and not any(offering.labelled and not is_stale(offering, since) for offering in nodes)


def unmaintained(facts: ClusterFacts, catalog: Catalog) -> frozenset[str]:
    """Return the label keys on which no term may be written: none, or those of GPU Feature Discovery."""
    return _discovered(catalog) if undiscovered(facts) else frozenset()


def _discovered(catalog: Catalog) -> frozenset[str]:
    """Return its labels among those that the catalog selects nodes by. ``nvidia.com/gpu.present``, the anchor, is the operator's."""
    anchors = {platform.anchor for platform in catalog.platforms.values()}
    return frozenset(key for key in platform_detection.node_keys(catalog) if key.startswith(_NVIDIA)) - anchors


class Following:
    """The modes of a cluster's nodes from one set of facts to the next: looked for only where what they rest on has changed, as 10,000
    nodes take milliseconds."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._facts = ClusterFacts()
        self._advertised: Advertised = NOT_KNOWN
        self._unmaintained: frozenset[str] = frozenset()

    def update(self, facts: ClusterFacts) -> tuple[Advertised, frozenset[str]]:
        """Return how devices are offered, the same object while nothing of that changes, and the label keys that nobody maintains."""
        before = self._facts
        nodes = facts.offerings is not before.offerings
        if nodes or facts.slices is not before.slices:
            modes = advertised(facts, self._catalog)
            self._advertised = self._advertised if modes == self._advertised else modes
        if nodes or facts.stacks is not before.stacks:
            self._unmaintained = unmaintained(facts, self._catalog)
        self._facts = facts
        return self._advertised, self._unmaintained


NVIDIA = "gpu.nvidia.com"
"""The driver of NVIDIA's GPUs, whose device plugin the GPU Operator places by a label of the node."""
DISCOVER = "helm install gfd nvdp/nvidia-device-plugin --set devicePlugin.enabled=false,gfd.enabled=true"
"""GPU Feature Discovery by itself (NVIDIA/k8s-device-plugin README)."""


def keep_one(driver: str, node: str) -> str:
    """Return how one of the two ways is turned off on a node, or everywhere."""
    if driver == NVIDIA:
        return (
            f"keep one: kubectl label node {node} nvidia.com/gpu.deploy.device-plugin=false --overwrite (GPU Operator), or "
            "resources.gpus.enabled=false in the DRA driver's chart"
        )
    return f"keep one: turn the device plugin off where {driver} runs, or the driver"


def offered_twice(twice: AdvertisedTwice) -> str:
    """Return one sentence on devices that are given away twice."""
    fact = f"GPUs are offered twice, as {', '.join(twice.resources)} and by {twice.driver} in ResourceSlices (first on node {twice.node})"
    return f"{fact}: two pods can get the same one; {keep_one(twice.driver, twice.node)}"


def nobody_writes(keys: Iterable[str]) -> str:
    """Return one sentence on labels on which no term is written."""
    fact = f"labels {', '.join(sorted(keys))} are not maintained: no GPU Feature Discovery runs, so Berth writes no terms on them"
    return f"{fact}; run it: {DISCOVER}"
