"""The cluster that random pods meet: nodes of every sort, taints, and claims and classes that are easy, odd or not there."""

from __future__ import annotations

from dataclasses import replace

from kube.taints import Taint
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_requests import Claim, DeviceClass, RequestChoice
from policies.facts.offered_devices import Offering, Stack
from policies.facts.places import NodePlace

NAMESPACES = ("team-a", "team-b", "dev")
NODES = {
    "node-t4": {
        "karpenter.k8s.aws/instance-gpu-name": "t4",
        "karpenter.k8s.aws/instance-family": "g4dn",
        "karpenter.sh/capacity-type": "spot",
    },
    "node-p5": {
        "karpenter.k8s.aws/instance-gpu-name": "h100",
        "karpenter.k8s.aws/instance-family": "p5",
        "karpenter.sh/capacity-type": "on-demand",
    },
    "node-gfd": {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.family": "turing", "nvidia.com/gpu.present": "true"},
    "node-gke": {
        "cloud.google.com/gke-nodepool": "a",
        "cloud.google.com/gke-accelerator": "nvidia-l4",
        "cloud.google.com/gke-spot": "true",
    },
    "node-of-a-new-machine": {
        "karpenter.k8s.aws/instance-gpu-name": "z1",
        "karpenter.k8s.aws/instance-family": "p99",
        "karpenter.sh/capacity-type": "spot",
    },
    "node-new-in-part": {
        "karpenter.k8s.aws/instance-gpu-name": "h100",
        "karpenter.k8s.aws/instance-family": "p99",
        "node.kubernetes.io/instance-type": "p99.metal",
        "karpenter.sh/capacity-type": "reserved",
    },
    "node-that-contradicts-itself": {
        "karpenter.k8s.aws/instance-gpu-name": "t4",
        "karpenter.k8s.aws/instance-family": "g4dn",
        "nvidia.com/gpu.product": "NVIDIA-L4",
        "nvidia.com/gpu.family": "hopper",
    },
    "node-without-gpus": {"karpenter.k8s.aws/instance-family": "m5", "node.kubernetes.io/instance-type": "m5.large"},
    "node-auto": {
        "eks.amazonaws.com/compute-type": "auto",
        "eks.amazonaws.com/instance-gpu-name": "l4",
        "karpenter.sh/capacity-type": "spot",
    },
    "node-group": {
        "eks.amazonaws.com/nodegroup": "a",
        "node.kubernetes.io/instance-type": "p4d.24xlarge",
        "eks.amazonaws.com/capacityType": "ON_DEMAND",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
    },
    "node-pod": {
        "sagemaker.amazonaws.com/compute-type": "hyperpod",
        "beta.kubernetes.io/instance-type": "ml.g6.8xlarge",
        "nvidia.com/gpu.product": "NVIDIA-L4",
    },
    "node-aks": {"kubernetes.azure.com/agentpool": "a", "node.kubernetes.io/instance-type": "Standard_NC24ads_A100_v4"},
    "node-amd": {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "zone": "a"},
    "node-bare": {"zone": "a"},
}
UNKNOWN_NODE = "node-new"
_TEAM = Taint(key="team", value="research")
TAINTS: dict[str, tuple[Taint, ...]] = {
    "node-t4": (_TEAM, Taint(key="nvidia.com/gpu", value="true")),
    "node-p5": (),
    "node-gke": (Taint(key="dedicated", value="a100", effect="NoExecute"),),
    "node-group": (Taint(key="pool", value="web"), Taint(key="team", value="web", effect="NoExecute")),
    "node-bare": (),
}
"""Of the other nodes it is not known."""
CLASSES = {
    "gpu.nvidia.com": DeviceClass("gpu.nvidia.com"),
    "odd": DeviceClass(),
    "amd": DeviceClass("gpu.amd.com", "example.com/amd-gpu"),
    "small": DeviceClass("gpu.nvidia.com", "example.com/small-gpu", (("gpu.nvidia.com/type", "gpu"),), plain=True),
    "mystery": DeviceClass("", "example.com/mystery"),
    "nic": DeviceClass("dra.cpu", "example.com/nic"),
}
"""``amd`` and ``small`` by names of their own; of ``odd`` and ``mystery`` nobody knows the driver; ``nic`` is no accelerator."""
_GPU = RequestChoice("gpu.nvidia.com")
CLAIMS: dict[str, dict[str, Claim]] = {
    "ResourceClaimTemplate": {
        "single-gpu": ((_GPU,),),
        "every": ((RequestChoice("gpu.nvidia.com", 1, None),),),
        "either": ((RequestChoice("gpu.nvidia.com", 1, 1), RequestChoice("amd", 4, 4), RequestChoice("small", 8, 8)),),
        "gpu-or-nic": ((RequestChoice("nic", 1, 1), RequestChoice("gpu.nvidia.com", 2, 2)),),
        "nics": ((RequestChoice("nic", 8, 8),), (RequestChoice("compute-domain.nvidia.com"),)),
    },
    "ResourceClaim": {
        "pair": ((RequestChoice("gpu.nvidia.com", 2, 2),),),
        "odd": ((RequestChoice("odd"),),),
        "several": ((_GPU,), (RequestChoice("amd", 2, 2),), (RequestChoice("nic"),)),
        "of-nobody": ((RequestChoice("nowhere.example.com", 1, 1),), (_GPU,)),
        "empty": (),
    },
}
ABSENT_CLAIM = "to-be-made"
_CUT = ("1g.5gb", "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb")
PLACES = {
    "node-cut": NodePlace(devices=tuple((f"nvidia.com/mig-{profile}", 2) for profile in _CUT)),
    "node-gke-cut": NodePlace(labels=(("cloud.google.com/gke-gpu-partition-size", "1g.10gb"),), devices=(("nvidia.com/gpu", 7),)),
    "node-gfd-cut": NodePlace(labels=(("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.10gb"),), devices=(("nvidia.com/gpu", 4),)),
    "node-whole": NodePlace(devices=(("nvidia.com/gpu", 8),)),
}
"""Nodes whose devices are known: slices by their own name or by a label, and GPUs of which nobody knows whether they are whole."""
CLUSTER = ClusterFacts(
    namespaces={"team-a": {"team": "research"}, "team-b": {"team": "web", "tier": "batch"}, "dev": {"environment": "dev"}},
    nodes=NODES,
    places=PLACES,
    taints=TAINTS,
    nodepool_grace={"gpu-a100": 1200, "default": None},
    device_classes=CLASSES,
    claims={(kind, namespace, name): claim for kind, named in CLAIMS.items() for namespace in NAMESPACES for name, claim in named.items()},
)
DEAD_LABELS = replace(
    CLUSTER,
    stacks={("GPUCluster", "c"): Stack(100, discovers=False)},
    offerings={"node-gfd": Offering((), gpus=True, labelled=True, started=99)},
)
"""The same where labels of GPU Feature Discovery were left behind."""
