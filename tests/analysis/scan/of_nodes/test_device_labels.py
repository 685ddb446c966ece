"""Labels and devices that disagree."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.scan.wording import advice, fact
from tests.support.recorded.parts import GPU, TAINT, node
from tests.support.recorded.scanned import scanned

A100 = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.count": "8"}


def kinds(labels: dict[str, str], devices: dict[str, int], *more: Any) -> list[str]:
    return [one.kind for one in scanned([node("n", labels, devices, TAINT), *more]).report.findings]


def slices(driver: str, where: str = "n", devices: int = 8) -> dict[str, Any]:
    spec = {"driver": driver, "nodeName": where, "devices": [{"name": f"d{at}"} for at in range(devices)]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": driver}, "spec": spec}


@pytest.mark.parametrize(
    ("labels", "devices", "found"),
    [
        (A100, {GPU: 8}, []),
        (A100, {GPU: 7}, ["gpus-missing"]),
        (A100 | {"nvidia.com/gpu.replicas": "4"}, {GPU: 32}, []),
        (A100 | {"nvidia.com/gpu.replicas": "4"}, {GPU: 8}, ["labels-disagree"]),
        (A100 | {"nvidia.com/gpu.replicas": "4"}, {GPU: 28}, ["gpus-missing"]),
        (A100 | {"nvidia.com/gpu.replicas": "4"}, {"nvidia.com/gpu.shared": 32}, []),
        (A100 | {"nvidia.com/gpu.replicas": "0"}, {"nvidia.com/mig-1g.10gb": 56}, []),
        (A100, {GPU: 4, "nvidia.com/mig-1g.10gb": 28}, []),
        (A100, {}, ["gpus-missing"]),
        (A100 | {"nvidia.com/gpu.count": "many"}, {GPU: 8}, []),
        (A100 | {"node.kubernetes.io/instance-type": "p4de.24xlarge"}, {GPU: 8}, []),
        (A100 | {"node.kubernetes.io/instance-type": "p5.48xlarge"}, {GPU: 8}, ["labels-disagree"]),
        (A100 | {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"}, {GPU: 8}, []),
        (A100 | {"nvidia.com/mig.config.state": "success"}, {GPU: 8}, []),
        (A100 | {"nvidia.com/mig.config.state": "pending"}, {GPU: 8}, ["mig-not-configured"]),
    ],
)
def test_labels_are_held_against_what_the_node_has(labels: dict[str, str], devices: dict[str, int], found: list[str]) -> None:
    """Replicas multiply, slices are not counted, and what can't be read is no proof."""
    assert kinds(labels, devices) == found


@pytest.mark.parametrize(
    ("driver", "devices", "found"),
    [
        ("gpu.nvidia.com", {GPU: 8}, ["advertised-twice"]),
        ("gpu.nvidia.com", {"nvidia.com/mig-1g.10gb": 8}, ["advertised-twice"]),
        ("compute-domain.nvidia.com", {GPU: 8}, []),
        ("gpu.amd.com", {GPU: 8}, []),
        ("dra.net", {GPU: 8}, []),
    ],
)
def test_a_gpu_that_a_device_plugin_and_a_driver_both_offer_is_found(driver: str, devices: dict[str, int], found: list[str]) -> None:
    """Of the same vendor: other drivers publish other devices."""
    assert kinds({}, devices, slices(driver)) == found


def test_a_driver_in_place_of_the_device_plugin_leaves_labels() -> None:
    """They are told with what is published instead, and nothing is offered twice."""
    (one,) = scanned([node("n", A100, {}, TAINT), slices("gpu.nvidia.com")]).report.findings
    assert (one.kind, one.values["published"]) == ("labels-without-devices", 8)


def test_slices_of_another_node_say_nothing_of_this_one() -> None:
    """Nor do those of no node."""
    other, none = slices("gpu.nvidia.com", "m"), slices("gpu.nvidia.com")
    del none["spec"]["nodeName"]
    assert kinds({}, {GPU: 8}, other, none) == []


def test_slices_of_an_older_generation_say_nothing() -> None:
    """A driver that publishes no GPUs any more has a newer one without devices."""
    old, new = slices("gpu.nvidia.com"), slices("gpu.nvidia.com", devices=0)
    new["metadata"] = {"name": "newer"}
    for generation, one in ((1, old), (2, new)):
        one["spec"]["pool"] = {"name": "n", "generation": generation}
    assert kinds({}, {GPU: 8}, old) == ["advertised-twice"]
    assert kinds({}, {GPU: 8}, old, new) == []


def test_what_to_type_names_the_node() -> None:
    """The device plugin goes by a label of the node, NVIDIA's DRA driver by its chart."""
    (one,) = scanned([node("n", {}, {GPU: 8}, TAINT), slices("gpu.nvidia.com")]).report.findings
    assert advice(one).startswith(
        "keep one: kubectl label node n nvidia.com/gpu.deploy.device-plugin=false --overwrite (GPU Operator), or "
    )


STACK = {"apiVersion": "nvidia.com/v1alpha1", "kind": "GPUCluster", "metadata": {"name": "c", "creationTimestamp": "2026-11-01T00:00:00Z"}}
OLD, YOUNG = ({**A100, "nvidia.com/gfd.timestamp": time} for time in ("1730000000", "1795000000"))


@pytest.mark.parametrize(
    ("labels", "devices", "found"),
    [
        (OLD, {}, ["labels-unmaintained"]),
        (OLD, {GPU: 8}, ["labels-unmaintained"]),
        (YOUNG, {}, ["gpus-missing"]),
        (A100, {GPU: 8}, []),
        ({"nvidia.com/gpu.present": "true"}, {}, ["labels-unmaintained"]),
        ({}, {}, []),
    ],
)
def test_labels_older_than_a_gpucluster_are_left_behind(labels: dict[str, str], devices: dict[str, int], found: list[str]) -> None:
    """It runs no GPU Feature Discovery, so nodes have old labels or none; young ones, and those without a time, are somebody's."""
    assert kinds(labels, devices, STACK) == found


def test_nodes_beside_one_with_living_labels_may_get_theirs() -> None:
    """Old labels are told all the same, a node without any is not."""
    more = [STACK, node("old", OLD, {GPU: 8}, TAINT), node("bare", {"nvidia.com/gpu.present": "true"}, {GPU: 8}, TAINT)]
    (one,) = scanned([node("n", YOUNG, {GPU: 8}, TAINT), *more]).report.findings
    assert (one.kind, one.names) == ("labels-unmaintained", ("old",))
    assert fact(one) == "labels of an earlier run (NVIDIA-A100-SXM4-80GB), and the GPU Operator runs no GPU Feature Discovery"
