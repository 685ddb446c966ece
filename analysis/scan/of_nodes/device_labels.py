"""Nodes whose labels and devices disagree: one GPU offered twice, labels of GPU Feature Discovery that outlived what
they describe, MIG that was not set up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from analysis.scan.finding import MOST_NAMED, Finding, FindingSubject, FindingValues, Kind
from analysis.scan.machines import Machines
from analysis.scan.of_nodes.missing_devices import Missing
from analysis.scan.seen import GpuNode, ScannedCluster
from catalog import Catalog
from kube.labels import GPU_COUNT, GPU_PRODUCT, GPU_REPLICAS, MIG_CONFIG, MIG_STATE
from kube.node import label_number
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_modes import is_stale, offered_beside, stale_since, undiscovered
from policies.facts.offered_devices import STACKS, Offering

WHOLE, SHARED, SLICE = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-"
_Values = FindingValues
_Check = Callable[[GpuNode], _Values | None]


def find(seen: ScannedCluster) -> Iterator[Finding]:
    """Yield the findings on nodes; those of a group that are alike are one."""
    machines, unmaintained = Machines(seen.catalog), _Unmaintained(seen.cluster.facts)
    missing = Missing(seen, lambda node: unmaintained.check(node) is not None)
    checks: tuple[tuple[Kind, tuple[str, ...], _Check], ...] = (
        ("gpus-missing", ("ResourceSlice", "DaemonSet"), missing.devices),
        ("gpus-unhealthy", (), missing.unhealthy),
        ("slices-missing", ("ResourceSlice",), missing.slices),
        ("advertised-twice", ("ResourceSlice",), lambda node: _twice(node, seen.catalog)),
        ("labels-unmaintained", STACKS, unmaintained.check),
        ("labels-without-devices", (), lambda node: _without_devices(node) if unmaintained.check(node) is None else None),
        ("labels-disagree", (), lambda node: _disagreeing(node, machines)),
        ("mig-not-configured", (), _mig),
    )
    groups: dict[tuple[Kind, tuple[str, str], _Values], list[GpuNode]] = {}
    rests = {kind: rests_on for kind, rests_on, _ in checks}
    for node in seen.nodes.values():
        for kind, _, check in checks:
            if (values := check(node)) is not None:
                groups.setdefault((kind, node.group, values), []).append(node)
    for (kind, (what, name), values), nodes in groups.items():
        prices = [usd for node in nodes if (usd := node.usd_whole) is not None]
        yield Finding(
            kind=kind,
            where=FindingSubject(what, "", name),
            values=dict(values),
            nodes=len(nodes),
            names=tuple(sorted(node.name for node in nodes)[:MOST_NAMED]),
            gpus=sum(node.gpus or 0 for node in nodes),
            usd=sum(prices) if prices else None,
            rests_on=rests[kind],
        )


def _twice(node: GpuNode, catalog: Catalog) -> _Values | None:
    """A device plugin offers devices of a vendor whose DRA driver publishes some for the same node: each knows nothing of what the other
    has given away (``policies.facts.device_modes``)."""
    plugged = [name for name, amount in node.allocatable.items() if amount]
    for driver, count in sorted(node.slices.items()):
        offered = offered_beside(driver, plugged, catalog)
        if count and offered:
            amount = sum(node.allocatable[name] for name in offered)
            return ("driver", driver), ("published", count), ("resources", offered), ("offered", amount)
    return None


class _Unmaintained:
    """Labels of GPU Feature Discovery that were left behind, or are not there although the node has GPUs, where the GPU Operator runs
    none and no node shows that somebody else does."""

    def __init__(self, facts: ClusterFacts) -> None:
        self._facts = facts
        self._since = stale_since(facts)
        self._undiscovered = undiscovered(facts)

    def check(self, node: GpuNode) -> _Values | None:
        offering = self._facts.offerings.get(node.name, Offering())
        if is_stale(offering, self._since) or (self._undiscovered and (offering.gpus or offering.labelled)):
            return (("product", node.labels.get(GPU_PRODUCT, "")),)
        return None


def _without_devices(node: GpuNode) -> _Values | None:
    """The labels count GPUs, and nothing of the vendor's is in the node's capacity: a DRA driver publishes some instead."""
    count = label_number(node.labels, GPU_COUNT)
    if not count or any(amount for name, amount in node.capacity.items() if name.startswith("nvidia.com/")):
        return None
    published = sum(count for driver, count in node.slices.items() if driver.endswith("nvidia.com"))
    if not published:
        return None
    return ("labels", count), ("product", node.labels.get(GPU_PRODUCT, "")), ("published", published)


def _disagreeing(node: GpuNode, machines: Machines) -> _Values | None:
    """The labels name another model than the machine has, or another number of GPUs than the node has. A machine cut into slices is not
    counted, as the label then counts what is left."""
    of_product, machine = machines.of_product(node.labels), machines.machine(node.labels)
    if of_product is not None and machine is not None and of_product.model != machine.model:
        return ("label", GPU_PRODUCT), ("says", node.labels.get(GPU_PRODUCT, "")), ("is", f"{machine.type} has {machine.model}")
    count, capacity = label_number(node.labels, GPU_COUNT), node.capacity.get(WHOLE, 0)
    if node.missing or node.place.registered:  # too few is a finding of its own, and a vGPU maker offers parts
        return None
    if not count or not capacity or SHARED in node.capacity or any(name.startswith(SLICE) for name in node.capacity):
        return None
    replicas = max(label_number(node.labels, GPU_REPLICAS) or 1, 1)
    if count * replicas == capacity:
        return None
    of_each = f" with {replicas} replicas" if replicas > 1 else ""
    return ("label", GPU_COUNT), ("says", f"{count}{of_each}"), ("is", f"{WHOLE} {capacity}")


def _mig(node: GpuNode) -> _Values | None:
    state = node.labels.get(MIG_STATE)
    if state in (None, "success"):
        return None
    return ("state", state), ("config", node.labels.get(MIG_CONFIG, ""))
