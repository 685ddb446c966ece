"""The accelerators that a node should have, as its instance type and its labels say, and those of them that it does not offer.

A device plugin that does not run on the node, a driver, or a device that is broken leave such a node behind: pods wait for it, and it is
paid for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from catalog import Catalog
from catalog.platforms import GpuLabel
from kube.labels import GPU_PRODUCT, GPU_REPLICAS, INSTANCE_TYPE, MIG_CONFIG, MIG_COUNT_END, MIG_PREFIX, MIG_STATE, MIG_STRATEGY
from kube.node import ExpectedAmount, Node, label_number
from policies.facts.platform_detection import NOT_THERE
from policies.pods.unlisted_accelerators import looks_like_one

SLICES = ("mig", "partition")
"""Kinds of resource that are cut out of whole devices: how many there are depends on the sizes."""


class ExpectedDevices(NamedTuple):
    """The accelerators that a node should have."""

    vendor: str
    resource: str
    """The name of one whole device; "" if the catalog has none."""
    number: int | None
    """None if only that there are some is known."""
    key: str
    """The label that says so, with its value."""
    value: str


class MissingDevices(NamedTuple):
    """Devices of one name that a node should offer and does not."""

    resource: str
    expected: int
    """How many there should be; 0 if that is not known."""
    capacity: int
    """How many the kubelet counts, healthy or not; as physical devices, unless they are slices."""
    allocatable: int
    """How many of those are healthy."""
    key: str
    """The label that says how many there should be, with its value; "" if what the kubelet counts does."""
    value: str


def gpu_label(labels: Mapping[str, str], catalog: Catalog) -> GpuLabel | None:
    """Return the first label by which these say that a node has accelerators; None if none does."""
    for row in catalog.gpu_labels:
        value = labels.get(row.key, "")
        if value.lower() not in NOT_THERE and fnmatchcase(value.lower(), row.value or "*"):
            return row
    return None


def expected_devices(labels: Mapping[str, str], catalog: Catalog) -> ExpectedDevices | None:
    """Return what a node with these labels should have: by its instance type, else by the first label that says so."""
    type_ = labels.get(INSTANCE_TYPE, "")
    if (machine := catalog.types.get(type_)) is not None and machine.count:
        return ExpectedDevices(machine.attributes.get("manufacturer", ""), machine.resource, machine.count, INSTANCE_TYPE, type_)
    row = gpu_label(labels, catalog)
    if row is None:
        return None
    count = label_number(labels, row.count) if row.count else None
    sliced = "-MIG-" in labels.get(GPU_PRODUCT, "") and row.count.startswith("nvidia.com/")  # then slices are counted
    return ExpectedDevices(row.vendor, whole_name(row.vendor, catalog), None if sliced else count or None, row.key, labels[row.key])


def whole_name(vendor: str, catalog: Catalog) -> str:
    """Return the resource name of one whole device of a vendor; "" if the catalog has none."""
    named = (known.name for known in catalog.resources if known.vendor == vendor and known.name is not None)
    of_labels = (row.resource for row in catalog.gpu_labels if row.vendor == vendor and row.resource)
    return catalog.whole.get(vendor) or next(named, "") or next(of_labels, "")


def missing_devices(node: Node, labels: Mapping[str, str], published: Mapping[str, int], catalog: Catalog) -> Iterator[MissingDevices]:
    """Yield what a node should offer and does not. ``labels``: its own, with the values of older keys under the newer ones. ``published``:
    DRA driver -> the devices that it publishes for the node."""
    broken = list(_unhealthy(node, catalog))
    yield from broken
    if any(count and driver in catalog.dra_drivers for driver, count in published.items()):
        return
    if not broken:
        yield from _slices(node)
    expected = expected_devices(labels, catalog)
    offered = list(_offered(node, "" if expected is None else expected.vendor, catalog))
    if expected is None or any(missing.resource in offered for missing in broken):
        return
    if not offered:
        yield MissingDevices(expected.resource, expected.number or 0, 0, 0, expected.key, expected.value)
    elif expected.number and not node.registered and sum(map(node.offered, offered)) != expected.number:  # equal: replicas are an old label
        whole = _whole_devices(node, labels, offered, catalog)
        if whole is not None and whole < expected.number:
            yield MissingDevices(expected.resource, expected.number, whole, whole, expected.key, expected.value)


def _unhealthy(node: Node, catalog: Catalog) -> Iterator[MissingDevices]:
    """Yield the accelerators of which pods may hold fewer than there are: unhealthy ones, or all where the device plugin has stopped."""
    for name, capacity in node.capacity.items():
        if catalog.resource(name) is not None and node.allocatable.get(name, 0) < capacity:
            yield MissingDevices(name, capacity, capacity, node.allocatable.get(name, 0), "", "")


_ALL_OF = re.compile(r"all-(\d+g\.\d+gb[+.\w-]*)", re.ASCII)
"""The configurations of NVIDIA's MIG manager that cut each GPU into slices of one size (mig-parted deployments/gpu-operator)."""


def _slices(node: Node) -> Iterator[MissingDevices]:
    """Yield the MIG slices that labels count, or of which a configuration that was applied has some, and that are not there."""
    applied = _ALL_OF.fullmatch(node.labels.get(MIG_CONFIG, "")) if node.labels.get(MIG_STATE) == "success" else None
    if applied is not None and node.labels.get(MIG_STRATEGY) == "mixed":
        name = f"{MIG_PREFIX}{applied[1].replace('+', '.')}"
        if not node.offered(name) and not node.offered(f"{name}.shared") and f"{name}{MIG_COUNT_END}" not in node.labels:
            yield MissingDevices(name, 0, 0, 0, MIG_CONFIG, node.labels[MIG_CONFIG])
    for key, value in node.labels.items():
        if key.startswith(MIG_PREFIX) and key.endswith(MIG_COUNT_END):
            name = key.removesuffix(MIG_COUNT_END)
            count = (label_number(node.labels, key) or 0) * max(label_number(node.labels, f"{name}.replicas") or 1, 1)
            if node.offered(name) + node.offered(f"{name}.shared") < count:
                yield MissingDevices(name, count, node.offered(name), node.allocatable.get(name, 0), key, value)


def _offered(node: Node, vendor: str, catalog: Catalog) -> Iterator[str]:
    """Yield the names of a vendor's accelerators that the node has, healthy or not; those of unknown vendors, and measures, may be."""
    for name in node.extended:
        if node.offered(name):
            known = catalog.resource(name)
            if known.vendor in (vendor, "any", "") if known is not None else _may_be_one(name, catalog):
                yield name


def _may_be_one(name: str, catalog: Catalog) -> bool:
    """Return whether a name that the catalog does not know may stand for accelerators."""
    return catalog.measure(name) is not None or looks_like_one(name, catalog)


def _whole_devices(node: Node, labels: Mapping[str, str], names: Iterable[str], catalog: Catalog) -> int | None:
    """Return how many whole devices a node offers; None where slices, measures or names of unknown devices are among them."""
    counts = []
    replicas = max(label_number(labels, GPU_REPLICAS) or 1, 1)
    for name in names:
        known = catalog.resource(name)
        if known is None or known.kind in (*SLICES, "part", "dra") or "-MIG-" in labels.get(GPU_PRODUCT, ""):
            return None
        counts.append(-(-node.offered(name) // (replicas if known.kind in ("gpu", "shared") else 1)))
    return sum(counts)


def expecting(node: Node, labels: Mapping[str, str], published: Mapping[str, int], catalog: Catalog) -> dict[str, ExpectedAmount]:
    """Return, by resource, what the labels of a node say that it should offer, of what it lacks."""
    every = missing_devices(node, labels, published, catalog)
    return {lack.resource: ExpectedAmount(lack.expected, lack.key, lack.value) for lack in every if lack.resource and lack.key}
