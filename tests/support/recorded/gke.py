"""GKE Standard: L4 for serving and notebooks, A100 for training on spot, all with the taint that GKE itself adds where a
cluster has a node pool without GPUs."""

from __future__ import annotations

from typing import Any

from tests.support.recorded.parts import GPU, TAINT, TOLERATION, Raw, namespaces, node, pod

TRAIN = ("jobset.x-k8s.io/v1alpha2", "JobSet", "pretrain")
JOB = ("batch/v1", "Job", "pretrain-0")
LLM = ("apps/v1", "ReplicaSet", "gemma-6c8")


def _node(name: str, pool: str, kind: str, accelerator: str, gpus: int, *, spot: bool = False) -> Raw:
    labels = {
        "cloud.google.com/gke-nodepool": pool,
        "node.kubernetes.io/instance-type": kind,
        "cloud.google.com/machine-family": kind.partition("-")[0],
        "cloud.google.com/gke-provisioning": "spot" if spot else "standard",
    }
    labels |= {"cloud.google.com/gke-accelerator": accelerator, "cloud.google.com/gke-accelerator-count": str(gpus)} if gpus else {}
    labels |= {"cloud.google.com/gke-spot": "true"} if spot else {}
    return node(name, labels, {GPU: gpus} if gpus else {}, *([TAINT] if gpus else []))


def objects(size: int = 1) -> list[Raw]:
    """All objects; ``size`` as for EKS."""
    found = [*namespaces("pretraining", "serving", "lab")]
    owner = {"apiVersion": TRAIN[0], "kind": TRAIN[1], "name": TRAIN[2], "uid": "uid-pretraining-pretrain", "controller": True}
    metadata = {"name": JOB[2], "namespace": "pretraining", "uid": "uid-pretraining-pretrain-0", "ownerReferences": [owner]}
    template = pod("x", "pretraining", {GPU: 7}, restartPolicy="Never")["spec"]
    spec = {"suspend": True, "template": {"metadata": {}, "spec": template}}
    found.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    for number in range(size):
        a100 = [f"a100-{number}-{at}" for at in range(2)]
        found += [_node(one, "a100-spot", "a2-highgpu-8g", "nvidia-tesla-a100", 8, spot=True) for one in a100]
        l4 = [f"l4-{number}-{at}" for at in range(4)]
        found += [_node(one, "l4", "g2-standard-12", "nvidia-l4", 1) for one in l4]
        found.append(_node(f"default-{number}", "default-pool", "e2-standard-8", "", 0))
        tolerated: Any = {"tolerations": [TOLERATION]}
        long: Any = tolerated | {"activeDeadlineSeconds": 86400}
        signed = {"jobset.sigs.k8s.io/jobset-name": "pretrain"}
        found += [
            pod(f"pretrain-{number}-{at}", "pretraining", {GPU: 7}, on=one, owner=JOB, labels=signed, **long) for at, one in enumerate(a100)
        ]
        found += [pod(f"gemma-{number}-{at}", "serving", {GPU: 1}, on=one, owner=LLM, **tolerated) for at, one in enumerate(l4[:2])]
        notebook = {"hub.jupyter.org/username": f"user-{number}", "component": "singleuser-server"}
        found.append(pod(f"jupyter-{number}", "lab", {GPU: 1}, on=a100[0], labels=notebook, **tolerated))
        wanted = {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
        found += [
            pod(f"slice-{number}", "lab", {"nvidia.com/mig-1g.5gb": 1}),
            pod(f"h100-{number}", "lab", {GPU: 1}, nodeSelector=wanted, **tolerated),
        ]
    return found
