"""Groups of nodes: their numbers against a count of the raw objects, and prices of slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

import pytest

from console.berths.groups import groups
from tests.support.console.large import MIG, SHARED, large_objects, large_policies
from tests.support.console.worlds import world
from tests.support.recorded import eks, gke, on_premises
from tests.support.recorded.parts import GPU, TAINT, Raw, node, pod

CLUSTERS = (eks, gke, on_premises)
DEVICES = (GPU, MIG, SHARED)


def _counted(objects: Sequence[Raw]) -> Counter[tuple[str, str]]:
    """(resource, total | held | free | whole) -> devices or nodes, read from the objects alone."""
    held: Counter[tuple[str, str]] = Counter()
    for one in _of(objects, "Pod"):
        for name, amount in one["spec"]["containers"][0]["resources"].get("limits", {}).items():
            held[one["spec"].get("nodeName", ""), name] += int(amount)
    found: Counter[tuple[str, str]] = Counter()
    for one in _of(objects, "Node"):
        takes = not one["spec"].get("unschedulable") and one["status"]["conditions"][0]["status"] == "True"
        takes = takes and one["metadata"]["labels"].get("nvidia.com/mig.config.state") != "pending"
        for name in set(DEVICES) & set(one["status"]["capacity"]):
            total, healthy = int(one["status"]["capacity"][name]), int(one["status"]["allocatable"].get(name, 0))
            taken = held[one["metadata"]["name"], name]
            free = max(0, healthy - taken) if takes else 0
            found += Counter({(name, "total"): total, (name, "held"): taken, (name, "free"): free, (name, "whole"): int(free == total)})
    return found


def _of(objects: Iterable[Raw], kind: str) -> Iterable[Raw]:
    return (one for one in objects if one["kind"] == kind)


def _shown(found: Any) -> Counter[tuple[str, str]]:
    shown: Counter[tuple[str, str]] = Counter()
    for line in (line for group in groups(found) for line in group.lines):
        for what in ("total", "held", "free", "whole"):
            shown[line.resource, what] += getattr(line, what)
        assert all(one.total == one.held + one.free + one.out for one in line.uses)
    return +shown


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda one: one.__name__.rpartition(".")[2])
def test_numbers_are_those_of_the_objects(cluster: ModuleType) -> None:
    """Devices in all, held and free, and nodes wholly free, are what a count of nodes and pods alone gives."""
    objects = cluster.objects(3)
    assert _shown(world(objects)) == +_counted(objects)


def test_numbers_of_a_large_cluster_are_those_of_its_objects() -> None:
    """So are those of slices and shared GPUs, of cordoned nodes, of ones that are gone, and of broken devices."""
    objects = large_objects(nodes=100, pods=900)
    found = world(objects, large_policies(5))
    shown = _shown(found)
    assert shown == +_counted(objects)
    assert all(shown[name, what] for name in (GPU, MIG) for what in ("held", "free"))
    assert sum(group.cordoned for group in groups(found))
    assert sum(group.not_ready for group in groups(found))


def test_eight_fragments_are_no_whole_node() -> None:
    """Eight free devices on one node differ from one that is free on each of eight."""
    labels = {"node.kubernetes.io/instance-type": "p4d.24xlarge", "karpenter.sh/nodepool": "a"}
    nodes = [node(f"n{at}", labels, {GPU: 8}) for at in range(8)]
    fragments = [pod(f"p{at}", "web", {GPU: 7}, on=f"n{at}") for at in range(8)]
    whole = [pod(f"p{at}", "web", {GPU: 8}, on=f"n{at}") for at in range(7)]
    scattered, together = (groups(world([*nodes, *pods], []))[0].lines[0] for pods in (fragments, whole))
    assert (scattered.free, scattered.hole, scattered.whole) == (8, 1, 0)
    assert (together.free, together.hole, together.whole) == (8, 8, 1)


def test_a_slice_costs_its_part_of_a_gpu() -> None:
    """56 slices of eight GPUs, and 32 replicas of four, cost what the machine costs, not 56 or 32 GPUs."""
    sliced = {"node.kubernetes.io/instance-type": "p4de.24xlarge", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    shared = {"node.kubernetes.io/instance-type": "g4dn.12xlarge", "nvidia.com/gpu.replicas": "8"}
    found = world([node("a", sliced, {MIG: 56}, TAINT), node("b", shared, {SHARED: 32}, TAINT), pod("plain", "web", {})], [])
    for group, machine in zip(groups(found), ("p4de.24xlarge", "g4dn.12xlarge"), strict=True):
        assert group.usd == pytest.approx(found.prices.machines[machine][0])
        assert group.usd == pytest.approx(group.usd_free)
    assert found.report.usd == pytest.approx(sum(found.prices.machines[one][0] for one in ("p4de.24xlarge", "g4dn.12xlarge")))


def test_what_is_free_is_not_known_without_pods() -> None:
    """Where not all pods were read nothing is said to be free."""
    unread = world([one for one in eks.objects() if one["kind"] != "Pod"])
    line = groups(unread)[0].lines[0]
    assert (line.free, line.held, line.hole, line.whole, line.usd_free) == (None, None, None, None, None)


def test_nodes_without_the_devices_that_their_labels_name_are_told() -> None:
    """A node that has labels of a GPU and no device stands with its group."""
    found = {group.key.model: group for group in groups(world(on_premises.objects()))}
    assert found["A100-80GB"].bare == ["dgx-0-3"]
    assert len(found["A100-80GB"].nodes) == 4


def test_a_node_with_slices_of_several_sizes_is_one_free_node() -> None:
    """And it is none while a slice of any size is taken."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.count": "1"}
    mixed = node("a", labels, {"nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-2g.20gb": 1}, TAINT)
    free, taken = (groups(world([mixed, *pods]))[0] for pods in ([pod("p", "web", {})], [pod("p", "web", {MIG: 1}, on="a")]))
    assert (len(free.lines), free.whole, taken.whole) == (2, 1, 0)


def test_replicas_are_shared_gpus_whatever_their_name() -> None:
    """The device plugin keeps the name of whole GPUs unless it is told to rename replicas."""
    labels = {"node.kubernetes.io/instance-type": "p4d.24xlarge"}
    shared, whole = (groups(world([node("a", labels, {GPU: count}), pod("p", "web", {})]))[0].lines[0] for count in (32, 8))
    assert (shared.sort, whole.sort) == ("Shared GPUs", "Whole GPUs")
