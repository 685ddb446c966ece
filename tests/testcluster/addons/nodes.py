"""Fake GPU nodes: labels, taints and allocatable as the device plugins and GPU Feature Discovery write them on real ones.

Sources: NVIDIA/k8s-device-plugin internal/lm (labels; with strategy mixed the node keeps the whole GPU's product, and each profile has
labels of its own), ROCm/k8s-device-plugin cmd/k8s-node-labeller, and the catalog for products, memory and profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog import Catalog, Gpu
from tests.testcluster.controlplane.cluster import Cluster

Raw = dict[str, Any]
TAINTS = {
    "nvidia": {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
    "amd": {"key": "amd.com/gpu", "effect": "NoSchedule"},
}
"""NVIDIA's as GKE and the GPU Operator's examples write it, AMD's as its operator's documentation recommends"""
MIG = {"1g.10gb": 21, "1g.20gb": 8, "2g.20gb": 6, "3g.40gb": 3}
"""Of eight A100-80GB: three with seven 1g.10gb, two with four 1g.20gb, three with 2g.20gb, 2g.20gb and 3g.40gb"""
PLAIN = {"cpu": "192", "memory": "2048Gi", "ephemeral-storage": "4Ti", "pods": "250"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeNode:
    """A node, and what it truly is, whatever its labels say."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Raw, ...] = ()
    resources: Mapping[str, str] = field(default_factory=dict)
    """beside CPU and memory: name -> amount"""
    model: str | None = None
    """as the catalog names it; None without a GPU"""
    sharing: str = "Exclusive"
    capacity: str = "reserved"
    """bare metal is there whether it is used or not"""
    address: str | None = None
    """where something of a rig answers for it; kwok gives others its own"""

    def manifest(self) -> Raw:
        """Without its status, which is written apart."""
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "node.kubernetes.io/instance-type": "bare-metal",
            **self.labels,
        }
        metadata = {"name": self.name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [*self.taints]}}

    def amounts(self) -> Mapping[str, str]:
        """Capacity, of which all is allocatable."""
        return {**PLAIN, **self.resources}


def bare_metal(catalog: Catalog) -> tuple[FakeNode, ...]:
    """One node of each kind that the guide shows: whole GPUs of five models, MIG slices, time-sliced GPUs, AMD, and none."""
    return (
        whole("t4", _gpu(catalog, "T4"), 4),
        whole("a10g", _gpu(catalog, "A10G"), 4),
        mixed_mig("a100-mig", _gpu(catalog, "A100-80GB"), 8, MIG),
        time_sliced("a100-shared", _gpu(catalog, "A100-40GB"), 8, 4),
        whole("h100", _gpu(catalog, "H100-80GB"), 8),
        whole("h200", _gpu(catalog, "H200"), 8),
        whole("mi300x", _gpu(catalog, "MI300X"), 8),
        FakeNode(name="cpu"),
    )


def _gpu(catalog: Catalog, model: str) -> Gpu:
    (found,) = catalog.models(model)
    return found


def whole(name: str, gpu: Gpu, count: int) -> FakeNode:
    """GPUs that are neither sliced nor shared."""
    labels = _nvidia(gpu, count) if gpu.vendor == "nvidia" else _amd(gpu)
    resource = f"{gpu.vendor}.com/gpu"
    return FakeNode(name=name, labels=labels, taints=(TAINTS[gpu.vendor],), resources={resource: str(count)}, model=gpu.model)


def time_sliced(name: str, gpu: Gpu, count: int, replicas: int) -> FakeNode:
    """Each GPU offered ``replicas`` times under its own name (renameByDefault: false)."""
    sharing = {"nvidia.com/gpu.replicas": str(replicas), "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    labels = _nvidia(gpu, count) | sharing | {"nvidia.com/gpu.product": f"{gpu.products[0]}-SHARED"}
    resources = {"nvidia.com/gpu": str(count * replicas)}
    return FakeNode(name=name, labels=labels, taints=(TAINTS["nvidia"],), resources=resources, model=gpu.model, sharing="TimeSliced")


def mixed_mig(name: str, gpu: Gpu, count: int, slices: Mapping[str, int]) -> FakeNode:
    """Every GPU sliced, strategy mixed: no whole GPU is left, each profile is a resource. ``slices``: profile -> how many on the node."""
    labels = _nvidia(gpu, count) | {
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/gpu.replicas": "0",
        "nvidia.com/mig.config.state": "success",
    }
    profiles = {profile.name: profile for profile in gpu.mig}
    for text, number in slices.items():
        profile = profiles[text]
        base = f"nvidia.com/mig-{text.replace('+', '.')}"
        labels |= {
            f"{base}.count": str(number),
            f"{base}.product": f"{gpu.products[0]}-MIG-{text}",
            f"{base}.replicas": "1",
            f"{base}.sharing-strategy": "none",
            f"{base}.slices.gi": str(profile.compute),
            f"{base}.slices.ci": str(profile.compute),
        }
    resources = {"nvidia.com/gpu": "0"} | {f"nvidia.com/mig-{text.replace('+', '.')}": str(number) for text, number in slices.items()}
    return FakeNode(name=name, labels=labels, taints=(TAINTS["nvidia"],), resources=resources, model=gpu.model, sharing="MIG")


def _nvidia(gpu: Gpu, count: int) -> dict[str, str]:
    major, _, minor = (gpu.compute_capability or "0.0").partition(".")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": gpu.products[0],
        "nvidia.com/gpu.family": gpu.family,
        "nvidia.com/gpu.memory": str(gpu.memory_mib),
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/mig.capable": str(bool(gpu.mig)).lower(),
        "nvidia.com/mig.strategy": "single",  # the GPU Operator's default, also where nothing is sliced
        "nvidia.com/cuda.driver-version.major": "580",
        "feature.node.kubernetes.io/pci-10de.present": "true",
    }


def _amd(gpu: Gpu) -> dict[str, str]:
    return {
        "amd.com/gpu.product-name": gpu.products[0],
        "amd.com/gpu.vram": f"{gpu.memory_gb}G",
        "feature.node.kubernetes.io/amd-gpu": "true",
    }


def add(cluster: Cluster, *added: FakeNode) -> None:
    """Create them and wait until kwok has made them ready, when their taint not-ready is gone."""
    for node in added:
        cluster.api.create(node.manifest())
        amounts = dict(node.amounts())
        value = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}}
        status: Raw = {"capacity": amounts, "allocatable": amounts}
        if node.address is not None:
            named = {"type": "Hostname", "address": node.name}
            status["addresses"] = [{"type": "InternalIP", "address": node.address}, named]
        cluster.api.patch(value, {"status": status}, subresource="status")
    for node in added:
        cluster.wait_for(lambda node=node: _ready(cluster, node), f"node {node.name} to be ready")  # type: ignore[misc]


def _ready(cluster: Cluster, node: FakeNode) -> bool:
    """Its taints are its own again."""
    found = cluster.api.get("v1", "Node", node.name)
    conditions = {one["type"]: one["status"] for one in (found or {}).get("status", {}).get("conditions", ())}
    taints = {one["key"] for one in (found or {}).get("spec", {}).get("taints", ())}
    return conditions.get("Ready") == "True" and taints == {one["key"] for one in node.taints}
