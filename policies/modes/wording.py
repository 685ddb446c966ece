"""Sentences about offered devices and unmaintained labels, with the next step."""

from __future__ import annotations

from collections.abc import Iterable

from policies.modes.advertised import AdvertisedTwice

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


def offered_twice(one: AdvertisedTwice) -> str:
    """Return one sentence on devices that are given away twice."""
    fact = f"GPUs are offered twice, as {', '.join(one.resources)} and by {one.driver} in ResourceSlices (first on node {one.node})"
    return f"{fact}: two pods can get the same one; {keep_one(one.driver, one.node)}"


def nobody_writes(keys: Iterable[str]) -> str:
    """Return one sentence on labels on which no term is written."""
    fact = f"labels {', '.join(sorted(keys))} are not maintained: no GPU Feature Discovery runs, so Berth writes no terms on them"
    return f"{fact}; run it: {DISCOVER}"
