"""Labels and devices that disagree."""

from __future__ import annotations

from typing import Any

import pytest

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
        (A100, {GPU: 7}, ["labels-disagree"]),
        (A100 | {"nvidia.com/gpu.replicas": "4"}, {GPU: 32}, []),
        (A100 | {"nvidia.com/gpu.replicas": "4"}, {GPU: 8}, ["labels-disagree"]),
        (A100 | {"nvidia.com/gpu.replicas": "4"}, {"nvidia.com/gpu.shared": 32}, []),
        (A100 | {"nvidia.com/gpu.replicas": "0"}, {"nvidia.com/mig-1g.10gb": 56}, []),
        (A100, {GPU: 4, "nvidia.com/mig-1g.10gb": 28}, []),
        (A100, {}, ["labels-without-devices"]),
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
