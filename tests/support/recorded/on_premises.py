"""Machines of one's own with the NVIDIA GPU Operator: DGX A100 for all, H100 of one team, T4 for the rest, MIG that failed
on one node, labels that a node kept after a card was taken out, and a DRA driver tried beside the device plugin."""

from __future__ import annotations

from typing import Any

from tests.support.recorded.parts import GPU, TAINT, TOLERATION, Raw, namespaces, node, pod

TEAM: Raw = {"key": "team", "value": "vision", "effect": "NoSchedule"}
OF_TEAM: Raw = {"key": "team", "operator": "Equal", "value": "vision", "effect": "NoSchedule"}
VOLCANO = ("batch.volcano.sh/v1alpha1", "Job", "detect")


def _node(name: str, product: str, family: str, gpus: int, *taints: Raw, count: int | None = None, **labels: str) -> Raw:
    known = {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.family": family,
        "nvidia.com/gpu.count": str(gpus if count is None else count),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig.config.state": "success",
    }
    return node(name, known | {f"nvidia.com/{key}": value for key, value in labels.items()}, {GPU: gpus} if gpus else {}, *taints)


def _slice(name: str, where: str, gpus: int) -> Raw:
    spec = {
        "driver": "gpu.nvidia.com",
        "nodeName": where,
        "pool": {"name": where, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{at}", "attributes": {"type": {"string": "gpu"}}} for at in range(gpus)],
    }
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def objects(size: int = 1) -> list[Raw]:
    """All objects; ``size`` as for EKS."""
    found = [*namespaces("vision", "shared", "physics")]
    for number in range(size):
        a100 = [f"dgx-{number}-{at}" for at in range(4)]
        found += [_node(one, "NVIDIA-A100-SXM4-80GB", "ampere", 8, TAINT) for one in a100[:2]]
        found.append(_node(a100[2], "NVIDIA-A100-SXM4-80GB", "ampere", 7, TAINT, count=8))
        failed = {"mig.config.state": "failed", "mig.config": "all-1g.10gb"}
        found.append(_node(a100[3], "NVIDIA-A100-SXM4-80GB", "ampere", 0, TAINT, count=8, **failed))
        h100 = [f"h100-{number}-{at}" for at in range(2)]
        found += [_node(one, "NVIDIA-H100-80GB-HBM3", "hopper", 8, TAINT, TEAM) for one in h100]
        found.append(_slice(f"slice-{number}", h100[1], 8))
        found += [_node(f"t4-{number}-{at}", "Tesla-T4", "turing", 2) for at in range(2)]
        mine: Any = {"tolerations": [TOLERATION, OF_TEAM]}
        found += [
            pod(f"detect-{number}-{at}", "vision", {GPU: 8}, on=one, owner=VOLCANO, schedulerName="volcano", **mine)
            for at, one in enumerate(h100)
        ]
        tolerated: Any = {"tolerations": [TOLERATION]}
        found.append(pod(f"simulate-{number}", "physics", {GPU: 4}, on=a100[0], owner=("batch/v1", "Job", "simulate"), **tolerated))
        found.append(pod(f"lab-{number}-0", "shared", {GPU: 2}, on=a100[1], labels={"notebook-name": "lab"}, **tolerated))
        found.append(pod(f"etl-{number}", "shared", {}, on=f"t4-{number}-0", owner=("apps/v1", "ReplicaSet", "etl-1")))
        found += [
            pod(f"bare-{number}", "vision", {GPU: 4}, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}),
            pod(f"cut-{number}", "physics", {"nvidia.com/mig-1g.10gb": 1}, **tolerated),
            pod(f"twelve-{number}", "physics", {GPU: 12}, **tolerated),
        ]
    return found
