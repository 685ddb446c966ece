"""Names and numbers that are the same in every cluster: labels of nodes, phases of pods, sizes of Events."""

from __future__ import annotations

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
HOSTNAME = "kubernetes.io/hostname"
"""Labels of k8s.io/api core/v1 well_known_labels.go."""
OLDER_NAMES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}
"""Older name of a label -> its name (sigs.k8s.io/karpenter pkg/apis/v1/labels.go ``NormalizedLabels``)."""

NODE_POOL = "karpenter.sh/nodepool"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
OF_KARPENTER = frozenset({NODE_POOL, CAPACITY_TYPE, ARCH, OS, INSTANCE_TYPE, "node.kubernetes.io/windows-build", REGION, ZONE})
"""Labels that every machine of Karpenter has, whatever its cloud (pkg/apis/v1/labels.go ``WellKnownLabels``)."""
EKS_GROUP, GKE_GROUP, AKS_GROUP = "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool"
CAST_AI = "provisioner.cast.ai/managed-by"
SCALED_BY_CLOUD = (GKE_GROUP, AKS_GROUP, "agentpool")
"""Labels of nodes whose groups the cloud's own autoscaler may scale up from nothing."""

GPU_PRESENT = "nvidia.com/gpu.present"
"""The GPU Operator keeps it on every node with a GPU (NVIDIA/gpu-operator controllers/nodelabeling_controller.go)."""
GPU_PRODUCT, GPU_FAMILY = "nvidia.com/gpu.product", "nvidia.com/gpu.family"
GPU_COUNT = "nvidia.com/gpu.count"
GPU_REPLICAS = "nvidia.com/gpu.replicas"
"""As how many devices the plugin offers each GPU, by time slicing or MPS."""
GPU_DISCOVERED = "nvidia.com/gfd.timestamp"
"""When GPU Feature Discovery started on the node, in Unix seconds; not written with ``--no-timestamp``. It writes the four above
too (NVIDIA/k8s-device-plugin internal/lm/resource.go, timestamp.go)."""
MIG_CONFIG = "nvidia.com/mig.config"
MIG_STATE = "nvidia.com/mig.config.state"
"""Of NVIDIA's MIG manager: ``pending`` or ``rebooting`` while the devices of a node change, then ``success`` or ``failed``
(NVIDIA/mig-parted, deployments/gpu-operator)."""

FINISHED = ("Succeeded", "Failed")
"""Phases in which a pod takes nothing of its node (kube-scheduler's informer of pods leaves them out)."""
EVENT_NOTE = 1024
"""The most characters of an Event's note (k8s.io/kubernetes pkg/apis/core/validation/events.go NoteLengthLimit)."""
