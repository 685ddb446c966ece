"""Random node selection: terms over the labels of the platforms in use, of others, and of nobody."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from catalog import MachineType
from tests.support.generators.random_cluster import NODES, UNKNOWN_NODE
from tests.support.generators.random_fields import chance
from tests.support.generators.random_worlds import World, catalog

Raw = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _vocabulary() -> dict[str, tuple[str, ...]]:
    """Label key -> values that nodes of some platform carry, and a few that none does."""
    found: dict[str, set[str]] = {}
    for platform in catalog().platforms.values():
        for key, attribute in {**platform.labels, **platform.after_boot}.items():
            found.setdefault(key, set()).update(_values(attribute))
        for labels in platform.capacity.values():
            for key, value in labels.items():
                found.setdefault(key, set()).add(value)
    for key, values in {
        "nvidia.com/gpu.sharing-strategy": ("none", "time-slicing", "mps"),
        "nvidia.com/gpu.slices.gi": ("1", "3"),
        "cloud.google.com/gke-gpu-sharing-strategy": ("time-sharing", "mps"),
        "cloud.google.com/gke-gpu-partition-size": ("1g.10gb", "1g.5gb", "3g.20gb"),
    }.items():
        found[key] = set(values)
    return {key: tuple(sorted(values)) for key, values in sorted(found.items()) if values}


def _values(attribute: str) -> set[str]:
    vendor, colon, what = attribute.rpartition(":")
    gpus = {g.model: g for g in catalog().gpus if not colon or g.vendor == vendor}
    if what == "product":
        return {p for g in gpus.values() for p in g.products} | {"NVIDIA-L4-SHARED", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"}
    if what == "gpuFamily":
        return {g.family for g in gpus.values()}
    if what == "vendor":
        return {vendor}
    read: dict[str, Callable[[MachineType], str | None]] = {
        "type": lambda m: m.type,
        "family": lambda m: m.family,
        "count": lambda m: None if m.count is None else str(m.count),
    }
    values = (read[what](m) if what in read else m.attributes.get(what) for m in catalog().machines)
    return {value for value in values if value is not None}


VOCABULARY = _vocabulary()
_COMMON = (
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-family",
    "node.kubernetes.io/instance-type",
    "karpenter.sh/capacity-type",
    "cloud.google.com/gke-accelerator",
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.family",
    "eks.amazonaws.com/capacityType",
)
_OTHERS: dict[str, tuple[str, ...]] = {
    "topology.kubernetes.io/zone": ("us-west-2a", "us-west-2b"),
    "disk": ("ssd",),
    "karpenter.sh/nodepool": ("gpu-a100", "gpu-t0", "gpu-t1", "cpu"),
    "pool": ("t0", "t1"),
    "tier": ("gpu", "web"),
    "kubernetes.io/arch": ("amd64",),
}
_TELLING = {
    "karpenter.k8s.aws/instance-gpu-name": ("t4", "a100", "h100", "l4", "a10g"),
    "karpenter.k8s.aws/instance-gpu-memory": ("40960", "81920", "16384"),
    "karpenter.k8s.aws/instance-family": ("p4d", "p5", "g4dn", "g5", "g6"),
    "nvidia.com/gpu.product": ("Tesla-T4", "NVIDIA-L4", "NVIDIA-H100-80GB-HBM3"),
    "node.kubernetes.io/instance-type": (
        "p5.48xlarge",
        "g4dn.xlarge",
        "g5.xlarge",
        "a2-highgpu-1g",
        "g2-standard-4",
        "Standard_NC24ads_A100_v4",
    ),
}


def _keys(world: World) -> tuple[str, ...]:
    """Keys of the platforms in use, so that terms mean something."""
    found: list[str] = []
    for name in world.platforms or tuple(catalog().platforms):
        platform = catalog().platforms[name]
        found += [*platform.labels, *platform.after_boot, *platform.capacity_keys, *platform.capacity_keys]
        found += (
            ["nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.slices.gi"]
            if platform.sharing == "gfd"
            else ["cloud.google.com/gke-gpu-sharing-strategy", "cloud.google.com/gke-gpu-partition-size"]
        )
    return tuple(found)


def key_of(random: Random, world: World) -> str:
    kind = random.random()
    if kind < 0.5:
        return random.choice(_keys(world))
    if kind < 0.65:
        return random.choice(_COMMON)
    if kind < 0.72:
        return random.choice(tuple(VOCABULARY))
    return random.choice(tuple(_OTHERS))


def value_of(random: Random, key: str) -> str:
    if chance(random, 0.1):
        return random.choice(("x999", "unknown", "NVIDIA-Z1"))
    found = random.choice(_TELLING[key] if key in _TELLING and chance(random, 0.7) else VOCABULARY.get(key) or _OTHERS.get(key) or ("x",))
    return f"ml.{found}" if key.endswith("instance-type") and chance(random, 0.2) else found


def spelled(random: Random, key: str) -> str:
    """By the older key now and then."""
    older = {new: old for old, new in catalog().label_aliases.items()}
    return older[key] if key in older and chance(random, 0.3) else key


def expression(random: Random, world: World) -> Raw:
    found = _expression(random, world)
    return {**found, "key": spelled(random, found["key"])}


def _expression(random: Random, world: World) -> Raw:
    key = key_of(random, world)
    operator = random.choice(("In",) * 5 + ("NotIn",) * 3 + ("Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    if operator in ("Gt", "Lt"):
        key = random.choice(
            (key, "karpenter.k8s.aws/instance-gpu-memory", "karpenter.k8s.aws/instance-gpu-count", "karpenter.k8s.aws/instance-generation")
        )
        return {"key": key, "operator": operator, "values": [random.choice(("1", "3", "20000", "50000"))]}
    return {"key": key, "operator": operator, "values": [value_of(random, key) for _ in range(random.randint(1, 3))]}


def term(random: Random, world: World) -> Raw:
    if chance(random, 0.08):
        return {}
    out: Raw = {"matchExpressions": [expression(random, world) for _ in range(random.choice((1, 1, 2, 3)))]}
    if chance(random, 0.06):
        node = random.choice((*NODES, UNKNOWN_NODE))
        out["matchFields"] = [{"key": "metadata.name", "operator": random.choice(("In", "In", "NotIn")), "values": [node]}]
        if chance(random, 0.5):
            del out["matchExpressions"]
    return out


def affinity(random: Random, world: World) -> Raw:
    out: Raw = {}
    node: Raw = {}
    if chance(random, 0.8):
        terms = [term(random, world) for _ in range(random.choice((1, 1, 1, 2, 2, 3, 6)))]
        node[REQUIRED] = {"nodeSelectorTerms": random.choice((terms, terms, terms, terms, [{}]))}
    if chance(random, 0.15):
        node[PREFERRED] = [{"weight": 1, "preference": term(random, world)}]
    out["nodeAffinity"] = node
    if chance(random, 0.2):
        out["podAntiAffinity"] = {REQUIRED: []}
    return out
