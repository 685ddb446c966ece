"""Random nodes, and pods that fit on some of them or nearly: all that kube-scheduler's filters read, valid for the API server."""

from __future__ import annotations

from random import Random
from typing import Any

Raw = dict[str, Any]
PRODUCT, ZONE, TIER, POOL = "nvidia.com/gpu.product", "topology.kubernetes.io/zone", "example.com/tier", "example.com/pool"
GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
LABELS = {PRODUCT: ("NVIDIA-L4", "NVIDIA-A100-SXM4-80GB", "Tesla-T4"), ZONE: ("a", "b"), TIER: ("1", "2", "9"), POOL: ("ml", "web", "")}
TAINTS = (
    {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
    {"key": "team", "value": "ml", "effect": "NoSchedule"},
    {"key": "team", "value": "web", "effect": "NoExecute"},
    {"key": "soft", "effect": "PreferNoSchedule"},
    {"key": "level", "value": "5", "effect": "NoSchedule"},
)
PORTS = (8080, 9000)


def node(random: Random, name: str) -> Raw:
    """One that is ready."""
    labels = {key: random.choice(values) for key, values in LABELS.items() if random.random() < 0.7}
    amounts = {
        "cpu": random.choice(("2", "4", "3500m")),
        "memory": random.choice(("4Gi", "8Gi")),
        "ephemeral-storage": "20Gi",
        "pods": random.choice(("3", "6", "20")),
        "hugepages-2Mi": random.choice(("0", "64Mi")),
        GPU: random.choice(("0", "1", "4", "8")),
        **({MIG: "7"} if random.random() < 0.3 else {}),
    }
    spec: Raw = {"taints": [dict(taint) for taint in TAINTS if random.random() < 0.15]}
    if random.random() < 0.1:
        spec["unschedulable"] = True
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": {"capacity": amounts, "allocatable": amounts}}


def pod(random: Random, name: str, nodes: list[str]) -> Raw:
    """One of the default scheduler; most ask for little of each kind, so that some places are left."""
    containers = [_container(random, f"c{i}", sidecar=None) for i in range(random.choice((1, 1, 1, 2)))]
    starting = [_container(random, f"i{i}", sidecar=random.random() < 0.5) for i in range(random.choice((0, 0, 1, 2)))]
    spec: Raw = {"containers": containers, "initContainers": starting, "tolerations": list(_tolerations(random))}
    if random.random() < 0.3:
        key = random.choice(tuple(LABELS))
        spec["nodeSelector"] = {key: random.choice(LABELS[key])}
    if random.random() < 0.05:
        spec["nodeSelector"] = {"kubernetes.io/hostname": random.choice(nodes)}
    if random.random() < 0.4:
        terms = [_term(random, nodes) for _ in range(random.choice((1, 1, 2)))]
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    if random.random() < 0.1:
        spec["resources"] = {"requests": {"cpu": random.choice(("1", "3"))}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _container(random: Random, name: str, *, sidecar: bool | None) -> Raw:
    requests: Raw = {}
    limits: Raw = {}
    if random.random() < 0.6:
        requests["cpu"] = random.choice(("100m", "500m", "1", "1e0", "2"))
    if random.random() < 0.3:
        requests["memory"] = random.choice(("1Gi", "3Gi", "512M"))
    if random.random() < 0.2:
        limits["memory"] = "3Gi"
    if random.random() < 0.5:
        limits[GPU] = random.choice(("1", "1", "2", "8"))
    if random.random() < 0.1:
        limits[MIG] = random.choice(("1", "8"))
    if random.random() < 0.05 and "cpu" in requests:
        limits["hugepages-2Mi"] = "32Mi"
    container: Raw = {"name": name, "image": "i:1", "resources": {"requests": requests, "limits": limits}}
    if random.random() < 0.15 and sidecar is not False:
        address = {"hostIP": random.choice(("127.0.0.1", "0.0.0.0"))} if random.random() < 0.5 else {}
        container["ports"] = [{"containerPort": 80, "hostPort": random.choice(PORTS), **address}]
    if sidecar:
        container["restartPolicy"] = "Always"
    return container


def _tolerations(random: Random) -> list[Raw]:
    found: list[Raw] = []
    for taint in TAINTS:
        chance = random.random()
        if chance < 0.4:
            found.append({"key": taint["key"], "operator": "Exists"})
        elif chance < 0.5:
            found.append({"key": taint["key"], "operator": "Equal", "value": random.choice(("ml", "web", "present", "5", ""))})
        elif chance < 0.55:
            found.append({"key": taint["key"], "operator": "Exists", "effect": random.choice(("NoSchedule", "NoExecute"))})
    if random.random() < 0.1:
        found.append({"operator": "Exists"})
    if random.random() < 0.1:
        found.append({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"})
    return found


def _term(random: Random, nodes: list[str]) -> Raw:
    if random.random() < 0.05:
        return {}
    term: Raw = {"matchExpressions": [_expression(random) for _ in range(random.choice((1, 1, 2)))]}
    if random.random() < 0.1:
        named = {"key": "metadata.name", "operator": random.choice(("In", "NotIn")), "values": [random.choice(nodes)]}
        term["matchFields"] = [named]
    return term


def _expression(random: Random) -> Raw:
    key = random.choice((*LABELS, "example.com/none"))
    operator = random.choice(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    if operator in ("Gt", "Lt"):
        return {"key": random.choice((TIER, key)), "operator": operator, "values": [random.choice(("1", "5", "3"))]}
    values = LABELS.get(key, ("x",))
    return {"key": key, "operator": operator, "values": random.sample(values, random.randint(1, min(2, len(values))))}
