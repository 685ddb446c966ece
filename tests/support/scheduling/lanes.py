"""Lanes: random clusters of one pod each, side by side in one real cluster. What a lane has, no pod of another lane can use.

Each lane is a namespace (with a quota, a LimitRange or neither), nodes with pods on them, a DaemonSet, and NodePools. All nodes of a
lane have its label and its taint; its pods select the one and tolerate the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.testcluster.addons import karpenter
from tests.testcluster.addons.karpenter import FAMILY

Raw = dict[str, Any]
LANE = "tests.berth.dev/lane"
GPU = "nvidia.com/gpu"
PRODUCTS = ("NVIDIA-A10G", "NVIDIA-L4", "Tesla-T4")
FAMILIES = ("g4dn", "g5", "g6", "g6e", "p4d", "p5")
CPUS = ("500m", "3", "3900m", "7", "15500m", "31", "47", "90", "180", "400")
MEMORIES = ("1Gi", "14Gi", "15Gi", "29Gi", "60Gi", "120Gi", "180Gi", "370Gi", "1000Gi", "3Ti")
MACHINES = {"cpu": ("4", "8", "32", "96"), "memory": ("16Gi", "64Gi", "384Gi"), GPU: ("1", "4", "8")}
LIMITS = {"cpu": ("0", "4", "16", "48", "192"), "memory": ("16Gi", "64Gi", "256Gi", "2Ti"), GPU: ("0", "1", "4", "8")}
QUOTAS = {
    f"requests.{GPU}": ("0", "1", "4", "8"),
    GPU: ("0",),
    "requests.cpu": ("2", "16", "100"),
    "limits.memory": ("16Gi", "256Gi"),
    "requests.memory": ("16Gi", "256Gi"),
    "pods": ("0", "10"),
}
"""A name -> hard amounts; the second counts nothing."""
RANGES: tuple[Raw, ...] = (
    {"type": "Container", "default": {"cpu": "8", "memory": "32Gi"}, "defaultRequest": {"cpu": "4", "memory": "16Gi"}},
    {"type": "Container", "default": {"memory": "256Gi"}},
    {"type": "Container", "max": {"cpu": "16", "memory": "128Gi"}},
    {"type": "Container", "max": {GPU: "4"}},
    {"type": "Pod", "max": {"cpu": "32"}},
    {"type": "Container", "min": {"cpu": "1"}},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One random cluster, as objects to create in this order, and the pod that asks for a place."""

    name: str
    """Of its namespace and the value of its label."""
    places: tuple[Raw, ...]
    """Namespace, quotas, Nodes with their status, NodePools, DaemonSets, and pods that are on nodes."""
    pod: Raw


def random_lane(random: Random, name: str) -> Lane:
    """Return one whose pod fits somewhere about half of the time."""
    nodes = [_node(random, name, number) for number in range(random.choice((0, 0, 1, 1, 2)))]
    pools = [_pool(random, name, number) for number in range(random.choice((0, 1, 1, 2)))]
    occupants = [_occupant(random, name, node, number) for number, node in enumerate(nodes) if random.random() < 0.6]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    daemons = [_daemon_set(random, name)] if random.random() < 0.5 else []
    return Lane(name=name, places=(namespace, *nodes, *pools, *daemons, *occupants, *_rules(random, name)), pod=_pod(random, name))


def _rules(random: Random, lane: str) -> Sequence[Raw]:
    found: list[Raw] = []
    if random.random() < 0.35:
        keys = random.sample(tuple(QUOTAS), random.choice((1, 1, 2)))
        spec: Raw = {"hard": {key: random.choice(QUOTAS[key]) for key in keys}}
        found.append({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota", "namespace": lane}, "spec": spec})
    if random.random() < 0.25:
        spec = {"limits": [random.choice(RANGES)]}
        found.append({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "range", "namespace": lane}, "spec": spec})
    return found


def _taint(lane: str) -> Raw:
    return {"key": LANE, "value": lane, "effect": "NoSchedule"}


def _node(random: Random, lane: str, number: int) -> Raw:
    name = f"{lane}-{number}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        LANE: lane,
        "nvidia.com/gpu.product": random.choice(PRODUCTS),
    }
    amounts = {key: random.choice(values) for key, values in MACHINES.items()}
    amounts |= {"ephemeral-storage": "200Gi", "pods": random.choice(("2", "4", "110"))}
    taints = [_taint(lane), *([karpenter.TAINTS["nvidia"]] if random.random() < 0.5 else [])]
    metadata = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}, "status": status}


def _pool(random: Random, lane: str, number: int) -> Raw:
    families = random.sample(FAMILIES, random.choice((1, 1, 2)))
    taints = (_taint(lane), *((karpenter.TAINTS["nvidia"],) if random.random() < 0.5 else ()))
    value = karpenter.node_pool(f"{lane}-{number}", requirements={FAMILY: families}, taints=taints, labels={LANE: lane})
    if random.random() < 0.5:
        keys = random.sample(tuple(LIMITS), random.choice((1, 1, 2)))
        value["spec"]["limits"] = {key: random.choice(LIMITS[key]) for key in keys}
    return value


def _daemon_set(random: Random, lane: str) -> Raw:
    labels = {"app": f"daemon-{lane}"}
    tolerations: list[Raw] = [{"operator": "Exists"}] if random.random() < 0.8 else [{"key": LANE, "operator": "Exists"}]
    requests = {"cpu": random.choice(("100m", "1", "4")), "memory": random.choice(("64Mi", "2Gi", "16Gi"))}
    containers = [{"name": "main", "image": "i:1", "resources": {"requests": requests}}]
    spec = {"containers": containers, "nodeSelector": {LANE: lane}, "tolerations": tolerations}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": f"daemon-{lane}", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


def _occupant(random: Random, lane: str, node: Raw, number: int) -> Raw:
    """A pod of another namespace that is on a node already, where it is no more than that."""
    amounts = node["status"]["allocatable"]
    requests = {"cpu": random.choice(("1", "3")), "memory": random.choice(("1Gi", "12Gi"))}
    limits = {GPU: random.choice(("1", amounts[GPU]))} if random.random() < 0.6 else {}
    containers = [{"name": "main", "image": "i:1", "resources": {"requests": requests, "limits": limits}}]
    metadata = {"name": f"{lane}-occupant-{number}", "namespace": "default"}
    spec = {"containers": containers, "nodeName": node["metadata"]["name"], "tolerations": [{"operator": "Exists"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _pod(random: Random, lane: str) -> Raw:
    requests = _chosen(random, {"cpu": (CPUS, 0.6), "memory": (MEMORIES, 0.5), "ephemeral-storage": (("10Gi", "199Gi"), 0.1)})
    limits = {GPU: random.choice(("1", "1", "1", "2", "4", "8", "16"))}
    if random.random() < 0.2 and "memory" in requests:
        limits["memory"] = requests["memory"]
    tolerations: list[Raw] = [{"key": LANE, "operator": "Exists"}]
    if random.random() < 0.75:
        tolerations.append({"key": "nvidia.com/gpu", "operator": "Exists"})
    selector = {LANE: lane} | _chosen(random, {FAMILY: (FAMILIES, 0.15), "nvidia.com/gpu.product": (PRODUCTS, 0.1)})
    containers = [{"name": "main", "image": "i:1", "resources": {"requests": requests, "limits": limits}}]
    spec = {"containers": containers, "nodeSelector": selector, "tolerations": tolerations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asks", "namespace": lane}, "spec": spec}


def _chosen(random: Random, amounts: Mapping[str, tuple[Sequence[str], float]]) -> dict[str, str]:
    """Return for each name one of its values, or none: its chance is the second."""
    return {name: random.choice(values) for name, (values, chance) in amounts.items() if random.random() < chance}
