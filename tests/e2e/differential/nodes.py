"""The fleet of the differential test: nodes labelled as Karpenter and the vendors' feature discovery do, and what each truly is.

What a GPU is (family, memory, product) is written down here once more, by hand, and not taken from the catalog that is tested. No node
ever runs full: generated pods that ask for several devices name the nodes whose machines have as many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.testcluster.controlplane.cluster import Cluster

Raw = dict[str, Any]
TRUTH = "truth.tests.berth.dev"
"""Prefix of labels that no platform writes: for kube-scheduler to say what a policy's author means."""
POOL = "karpenter.sh/nodepool"
AWS, BARE = "karpenter-aws", "gfd"
NVIDIA, AMD, NEURON = "nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron"
BASE = {"cpu": "100k", "memory": "1Pi", "ephemeral-storage": "1Pi", "pods": "100k"}
PLENTY = "1M"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A model. ``family`` and ``memory`` (nominal GB) None: newer than the catalog."""

    model: str
    product: str
    family: str | None
    memory: int | None
    aws: str = ""
    """as Karpenter's label has it, with the memory in MiB"""
    mib: int = 0
    vendor: str = "nvidia"


_CARDS = (
    Card(model="T4", product="Tesla-T4", family="turing", memory=16, aws="t4", mib=16384),
    Card(model="A10G", product="NVIDIA-A10G", family="ampere", memory=24, aws="a10g", mib=22888),
    Card(model="L4", product="NVIDIA-L4", family="ada-lovelace", memory=24, aws="l4", mib=22888),
    Card(model="L40S", product="NVIDIA-L40S", family="ada-lovelace", memory=48, aws="l40s", mib=45776),
    Card(model="A100-40GB", product="NVIDIA-A100-SXM4-40GB", family="ampere", memory=40, aws="a100", mib=40960),
    Card(model="A100-80GB", product="NVIDIA-A100-SXM4-80GB", family="ampere", memory=80, aws="a100", mib=81920),
    Card(model="H100-80GB", product="NVIDIA-H100-80GB-HBM3", family="hopper", memory=80, aws="h100", mib=81920),
    Card(model="H200", product="NVIDIA-H200", family="hopper", memory=141, aws="h200", mib=144384),
    Card(model="B200", product="NVIDIA-B200", family="blackwell", memory=180, aws="b200", mib=183359),
    Card(model="new", product="NVIDIA-Z1", family=None, memory=None, aws="x999", mib=65536),
    Card(model="V520", product="", family="rdna", memory=8, aws="radeon-pro-v520", mib=8192, vendor="amd"),
    Card(model="MI300X", product="AMD_Instinct_MI300X_OAM", family="cdna3", memory=192, vendor="amd"),
)
CARDS = {card.model: card for card in _CARDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a node truly has under one resource name."""

    card: Card | None
    """None: an accelerator that is no GPU, where policies place nothing"""
    sharing: str
    capacity: str
    instance_family: str | None
    pool: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetNode:
    """A node and its truth."""

    name: str
    platform: str | None
    card: Card | None = None
    capacity: str = "reserved"
    instance_family: str | None = None
    devices: int = 8
    sharing: Mapping[str, str] = field(default_factory=dict)
    """resource name -> Exclusive, MIG, TimeSliced"""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Raw, ...] = ()

    def offer(self, resource: str) -> Offer | None:
        """None: it has none of these."""
        if resource not in self.sharing:
            return None
        return Offer(
            card=self.card,
            sharing=self.sharing[resource],
            capacity=self.capacity,
            instance_family=self.instance_family,
            pool=self.labels.get(POOL),
        )

    def manifest(self) -> Raw:
        """With its status, which a node may bring."""
        amounts = {**BASE, **dict.fromkeys(self.sharing, PLENTY)}
        own = {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        metadata = {"name": self.name, "labels": {**own, **self.labels}}
        status = {"capacity": amounts, "allocatable": amounts}
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [*self.taints]}, "status": status}


def _aws(name: str, machine: str, model: str, devices: int, capacity: str, *, pool: str = "gpu", seen: bool = True) -> FleetNode:
    """As Karpenter labels a node. ``seen``: GPU Feature Discovery runs on it too."""
    card = CARDS[model]
    family, _, size = machine.partition(".")
    prefix, digits = "karpenter.k8s.aws/instance", next(c for c in family if c.isdigit())
    labels = {
        f"{prefix}-category": family.partition(digits)[0],
        f"{prefix}-family": family,
        f"{prefix}-generation": digits,
        f"{prefix}-size": size,
        f"{prefix}-gpu-name": card.aws,
        f"{prefix}-gpu-manufacturer": card.vendor,
        f"{prefix}-gpu-count": str(devices),
        f"{prefix}-gpu-memory": str(card.mib),
        "node.kubernetes.io/instance-type": machine,
        "karpenter.sh/capacity-type": capacity,
        POOL: pool,
    }
    if seen and card.vendor == "nvidia":
        labels |= _discovered(card, devices)
    resource = f"{card.vendor}.com/gpu"
    return FleetNode(
        name=name,
        platform=AWS,
        card=card,
        capacity=capacity,
        instance_family=family,
        devices=devices,
        sharing={resource: "Exclusive"},
        labels=labels,
        taints=({"key": resource, "value": "true", "effect": "NoSchedule"},),
    )


def _bare(name: str, model: str) -> FleetNode:
    """Own hardware, labelled by the vendor's feature discovery. How many it has is nobody's to know: any that a pod may ask for."""
    card = CARDS[model]
    labels = _discovered(card, 16) if card.vendor == "nvidia" else {"amd.com/gpu.product-name": card.product, "amd.com/gpu.family": "AI"}
    resource = f"{card.vendor}.com/gpu"
    taint = {"key": resource, "effect": "NoSchedule"}
    return FleetNode(name=name, platform=BARE, card=card, devices=16, sharing={resource: "Exclusive"}, labels=labels, taints=(taint,))


def _discovered(card: Card, devices: int) -> dict[str, str]:
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": card.product,
        "nvidia.com/gpu.family": card.family or "undefined",
        "nvidia.com/gpu.count": str(devices),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.strategy": "single",
    }


def _sliced(node: FleetNode, *profiles: str, whole: bool = False) -> FleetNode:
    """MIG of strategy mixed: a resource for each profile, the product's name stays; with ``whole`` some GPUs are not sliced."""
    slices = {f"nvidia.com/mig-{profile}": "MIG" for profile in profiles}
    labels = {**node.labels, "nvidia.com/mig.strategy": "mixed", "nvidia.com/mig.config.state": "success"}
    return replace(node, sharing={**slices, **(node.sharing if whole else {})}, labels=labels)


def _shared(node: FleetNode, resource: str = NVIDIA) -> FleetNode:
    """Time-sliced: under its own name the product ends in -SHARED, under another it stays."""
    labels = {**node.labels, "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    if resource == NVIDIA:
        labels["nvidia.com/gpu.product"] += "-SHARED"
    return replace(node, sharing={resource: "TimeSliced"}, labels=labels)


def _fleet() -> Iterator[FleetNode]:
    yield _aws("node-t4", "g4dn.xlarge", "T4", 1, "spot", seen=False)
    yield _aws("aws-t4", "g4dn.metal", "T4", 8, "on-demand")
    yield _shared(_aws("aws-t4-shared", "g4dn.12xlarge", "T4", 4, "on-demand", pool="gpu-t4-shared"))
    yield _aws("aws-a10g", "g5.xlarge", "A10G", 1, "on-demand", seen=False)
    yield _aws("aws-a10g-spot", "g5.48xlarge", "A10G", 8, "spot")
    yield _aws("aws-l4", "g6.xlarge", "L4", 1, "on-demand")
    yield _aws("aws-l4-spot", "g6.48xlarge", "L4", 8, "spot", seen=False)
    yield _shared(_aws("aws-l4-shared", "g6.12xlarge", "L4", 4, "spot"))
    yield _aws("aws-l40s", "g6e.12xlarge", "L40S", 4, "on-demand")
    yield _aws("aws-a100-40", "p4d.24xlarge", "A100-40GB", 8, "on-demand", seen=False)
    yield _aws("aws-a100-40-spot", "p4d.24xlarge", "A100-40GB", 8, "spot")
    yield _aws("aws-a100-80", "p4de.24xlarge", "A100-80GB", 8, "reserved", pool="gpu-a100")
    yield _tainted(_aws("aws-a100-t0", "p4de.24xlarge", "A100-80GB", 8, "on-demand", pool="gpu-t0", seen=False), "pool", "t0")
    yield _aws("node-p5", "p5.48xlarge", "H100-80GB", 8, "on-demand", seen=False)
    yield _aws("aws-h100-one", "p5.4xlarge", "H100-80GB", 1, "spot")
    yield _aws("aws-h100-spot", "p5.48xlarge", "H100-80GB", 8, "spot")
    yield _aws("aws-h200", "p5en.48xlarge", "H200", 8, "reserved")
    yield _aws("aws-b200", "p6-b200.48xlarge", "B200", 8, "reserved", seen=False)
    yield _aws("aws-new", "x9.48xlarge", "new", 8, "on-demand", seen=False)
    yield _aws("aws-new-spot", "x9.48xlarge", "new", 8, "spot")
    yield _aws("aws-v520", "g4ad.xlarge", "V520", 1, "on-demand")
    yield _bare("node-gfd", "T4")
    yield _bare("bare-l4", "L4")
    yield _shared(_bare("bare-l4-renamed", "L4"), "nvidia.com/gpu.shared")
    yield _bare("bare-a100-40", "A100-40GB")
    yield _shared(_bare("bare-a100-40-shared", "A100-40GB"))
    yield _bare("bare-a100-80", "A100-80GB")
    yield _sliced(_bare("bare-a100-mig", "A100-80GB"), "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb")
    yield _sliced(_bare("bare-a100-half", "A100-40GB"), "1g.5gb", "3g.20gb", whole=True)
    yield _bare("bare-h100", "H100-80GB")
    yield _sliced(_bare("bare-h100-mig", "H100-80GB"), "1g.10gb", "3g.40gb", "7g.80gb")
    yield _bare("bare-h200", "H200")
    yield _bare("bare-new", "new")
    yield _bare("bare-mi300x", "MI300X")
    yield from _others()


def _tainted(node: FleetNode, key: str, value: str) -> FleetNode:
    return replace(node, taints=(*node.taints, {"key": key, "value": value, "effect": "NoSchedule"}))


def _others() -> Iterator[FleetNode]:
    """Accelerators whose machines the catalog does not have, and nodes without any."""
    bare = _aws("aws-neuron", "inf2.48xlarge", "T4", 8, "on-demand", seen=False)
    labels = {key: value for key, value in bare.labels.items() if "-gpu-" not in key}
    taint = {"key": NEURON, "effect": "NoSchedule"}
    yield replace(bare, card=None, sharing={NEURON: ""}, labels=labels, taints=(taint,))
    yield replace(bare, name="aws-cpu", instance_family="m5", card=None, sharing={}, taints=(), labels=labels | _plain("m5.large"))
    yield FleetNode(name="bare-cpu", platform=None)


def _plain(machine: str) -> dict[str, str]:
    family, _, size = machine.partition(".")
    prefix = "karpenter.k8s.aws/instance"
    names = {f"{prefix}-category": family[0], f"{prefix}-family": family, f"{prefix}-generation": family[1], f"{prefix}-size": size}
    return names | {"node.kubernetes.io/instance-type": machine, POOL: "cpu"}


def _owned(number: int, node: FleetNode) -> FleetNode:
    """Labels that somebody else set: a zone in the cloud, a disk or a tier on some."""
    own = {"topology.kubernetes.io/zone": f"us-west-2{'ab'[number % 2]}"} if node.platform == AWS else {}
    own |= {"disk": "ssd"} if number % 3 == 0 else {}
    own |= {"pool": "t1", "tier": "gpu"} if node.name in ("bare-h100", "bare-h200") else {"tier": "web"} if number % 4 == 0 else {}
    return replace(node, labels={**own, **node.labels})


FLEET: tuple[FleetNode, ...] = tuple(_owned(number, node) for number, node in enumerate(_fleet()))
BY_NAME = {node.name: node for node in FLEET}


def add(cluster: Cluster, marks: Mapping[str, Mapping[str, str]]) -> list[Raw]:
    """Create them, ready for pods, with ``marks`` (node -> labels) beside their own; returns them as created.

    Nothing says that they are ready, so the taint which the API server gives to such a node is taken away; no controller gives it back.
    """
    made = []
    for node in FLEET:
        value = node.manifest()
        value["metadata"]["labels"] |= marks[node.name]
        cluster.api.create(value)
        cluster.api.patch(value, {"spec": {"taints": [*node.taints]}})
        made.append(value)
    return made
