"""What is read to tell how devices are offered."""

from __future__ import annotations

from typing import Any

import pytest

from kube.node import Node, read_node
from policies.facts.offered_devices import OfferedSlice, Offering, Stack, offering, slice_of, slimmed, stack_of

GPU = "nvidia.com/gpu"
SINCE = {"creationTimestamp": "2026-11-25T08:05:34Z"}


def node(labels: Any = None, **allocatable: Any) -> Node:
    return read_node({"metadata": {"labels": labels}, "status": {"allocatable": allocatable}})


def a_slice(*devices: Any, node: Any = "n", **pool: Any) -> dict[str, Any]:
    return {"spec": {"driver": "gpu.nvidia.com", "nodeName": node, "pool": pool, "devices": list(devices)}}


def test_of_a_node_what_pods_may_hold_counts() -> None:
    """A device plugin that is gone leaves an allocatable of 0; CPU and what the kubelet counts itself are no devices."""
    amounts = {GPU: "8", "nvidia.com/mig-1g.5gb": "0", "x.io/y": 1, "cpu": "4", "hugepages-2Mi": "0", "x.io/odd": "many"}
    assert offering(node(**amounts)).resources == (GPU, "x.io/y")
    assert offering(node(**{"deviceclass.resource.kubernetes.io/gpu": "4"})) == Offering()


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (None, Offering()),
        ({"nvidia.com/gpu.present": "true"}, Offering(gpus=True)),
        ({"nvidia.com/gpu.present": "false"}, Offering()),
        ({"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gfd.timestamp": "1730000000"}, Offering(labelled=True, started=1730000000)),
        ({"nvidia.com/gpu.family": "ada-lovelace"}, Offering(labelled=True)),
        ({"nvidia.com/gfd.timestamp": "soon"}, Offering()),
        ({"nvidia.com/gfd.timestamp": "٣"}, Offering()),
        ({"nvidia.com/gfd.timestamp": "9" * 40}, Offering()),
    ],
)
def test_labels_of_gpu_feature_discovery(labels: Any, found: Offering) -> None:
    """Those by which nodes are selected, and when it started, where that is told and can be read."""
    assert offering(node(labels)) == found


def test_nodes_that_are_alike_share_one_object() -> None:
    """A cluster has 10,000 of a few kinds."""
    assert offering(node(**{GPU: "8"})) is offering(node(**{GPU: "4"}))


def test_of_a_slice_the_devices_count_that_a_pod_may_get() -> None:
    """Not those that a taint keeps pods off, in either shape of the API."""
    off = {"taints": [{"key": "gpu.nvidia.com/xid", "effect": "NoSchedule"}]}
    on = {"taints": [{"key": "seen", "effect": "None"}]}
    found = slice_of(a_slice({}, on, off, {"basic": off}, "odd", name="n", generation=7))
    assert found == OfferedSlice(node="n", driver="gpu.nvidia.com", pool="n", generation=7, devices=2)


def test_a_slimmed_slice_is_the_same() -> None:
    """A replica keeps no more of it."""
    value = a_slice({}, {}, name="n", generation=2)
    assert slice_of({"spec": slimmed(value)}) == slice_of(value)


@pytest.mark.parametrize(
    "spec", [None, 5, [], {"devices": 10**30, "pool": []}, {"devices": {"a": 1}, "nodeName": None, "pool": {"generation": "x"}}]
)
def test_a_slice_of_whatever_shape_is_read(spec: Any) -> None:
    """What is not there counts as nothing."""
    assert slice_of({"spec": spec}) == OfferedSlice()


@pytest.mark.parametrize(
    ("kind", "version", "spec", "found"),
    [
        ("ClusterPolicy", "nvidia.com/v1", {}, Stack(1795593934, discovers=True)),
        ("ClusterPolicy", "nvidia.com/v1", {"gfd": {"enabled": True}}, Stack(1795593934, discovers=True)),
        ("ClusterPolicy", "nvidia.com/v1", {"gfd": {"enabled": False}}, Stack(1795593934, discovers=False)),
        ("ClusterPolicy", "kyverno.io/v1", {}, None),
        ("GPUCluster", "nvidia.com/v1alpha1", {"gfd": {"enabled": True}}, Stack(1795593934, discovers=False)),
        ("GPUCluster", "nvidia.com.example/v1", {}, None),
    ],
)
def test_what_the_gpu_operator_is_told_to_run(kind: str, version: str, spec: Any, found: Stack | None) -> None:
    """A ClusterPolicy runs GPU Feature Discovery unless it says no, a GPUCluster never; others' kinds of that name say nothing."""
    assert stack_of(kind, {"apiVersion": version, "metadata": SINCE, "spec": spec}) == found


@pytest.mark.parametrize(
    "time", [None, 5, "", "yesterday", "2026-11-25", "2026-13-01T00:00:00Z", "0000-01-01T00:00:00Z", "2026-11-25T08:05:34+01:00"]
)
def test_a_time_that_cannot_be_read_is_none(time: Any) -> None:
    """The API server writes UTC in whole seconds."""
    assert stack_of("GPUCluster", {"metadata": {"creationTimestamp": time}}) == Stack(None, discovers=False)
