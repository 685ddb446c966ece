"""EKS with Karpenter: a pool for training with the settings that Karpenter's own examples have, one for inference that is well kept, one of
machines whose GPUs EC2 does not report, and one without GPUs."""

from __future__ import annotations

from tests.support.recorded.parts import GPU, TAINT, TOLERATION, Raw, namespaces, node, pod

JOB = ("batch/v1", "Job", "finetune")
LLAMA = ("kubeflow.org/v1", "PyTorchJob", "llama")
LLM = ("apps/v1", "ReplicaSet", "llm-7d9")
SHOP = ("apps/v1", "ReplicaSet", "shop-5d4")
AGENT = ("apps/v1", "DaemonSet", "agent")


def _pool(name: str, families: list[str], *taints: Raw, limits: dict[str, str] | None = None, kept: bool = False) -> Raw:
    requirements = [
        {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": families},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "pinned" if kept else "gpu"}
    template = {"nodeClassRef": reference, "requirements": requirements, "expireAfter": "Never" if kept else "720h"}
    template |= {"terminationGracePeriod": "1h"} if kept else {}
    template |= {"taints": [*taints]} if taints else {}
    policy = "WhenEmpty" if kept else "WhenEmptyOrUnderutilized"
    spec = {"template": {"spec": template}, "disruption": {"consolidationPolicy": policy, "consolidateAfter": "1m"}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": spec | ({"limits": limits} if limits else {}),
    }


def _class(name: str, alias: str) -> Raw:
    spec = {"role": "nodes", "amiSelectorTerms": [{"alias": alias}]}
    return {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": name}, "spec": spec}


def _node(name: str, pool: str, kind: str, gpus: int, capacity: str = "on-demand", *taints: Raw, **labels: str) -> Raw:
    known = {
        "karpenter.sh/nodepool": pool,
        "karpenter.sh/capacity-type": capacity,
        "node.kubernetes.io/instance-type": kind,
        "karpenter.k8s.aws/instance-family": kind.partition(".")[0],
        "karpenter.k8s.aws/instance-category": kind[0],
    }
    return node(name, known | labels, {GPU: gpus} if gpus else {}, *taints)


def objects(size: int = 1) -> list[Raw]:
    """All objects. ``size``: how often each group of nodes, and what runs there, is repeated."""
    found = [*namespaces("research", "web", "shop"), _class("gpu", "bottlerocket@latest"), _class("pinned", "al2023@v20260901")]
    found += [
        _pool("gpu-train", ["p4d", "p5"]),
        _pool("gpu-serve", ["g5", "g6"], TAINT, limits={GPU: "64"}, kept=True),
        _pool("gpu-small", ["g6f"], TAINT, limits={GPU: "8"}, kept=True),
        _pool("general", ["m6i", "c6i"], kept=True),
    ]
    for number in range(size):
        train = [f"train-{number}-{at}" for at in range(4)]
        found += [_node(one, "gpu-train", "p4d.24xlarge", 8, "spot" if at < 2 else "on-demand") for at, one in enumerate(train)]
        serve = [f"serve-{number}-{at}" for at in range(3)]
        found += [_node(one, "gpu-serve", "g5.2xlarge", 1, "on-demand", TAINT) for one in serve]
        found.append(_node(f"plain-{number}", "general", "m6i.4xlarge", 0))
        spread = enumerate(train[:2])
        says = {"berth.dev/expected-duration": "6h"}
        found += [pod(f"llama-{number}-{at}", "research", {GPU: 7}, on=one, owner=LLAMA, annotations=says) for at, one in spread]
        marks = {"karpenter.sh/do-not-disrupt": "true"}
        found.append(
            pod(f"finetune-{number}", "research", {GPU: 8}, on=train[2], owner=JOB, annotations=marks, terminationGracePeriodSeconds=1800)
        )
        notebook = {"notebook-name": f"ana-{number}"}
        owner = ("apps/v1", "StatefulSet", f"ana-{number}")
        found.append(pod(f"ana-{number}-0", "research", {GPU: 1}, on=train[3], owner=owner, labels=notebook))
        found += [pod(f"llm-{number}-{at}", "web", {GPU: 1}, on=one, owner=LLM, tolerations=[TOLERATION]) for at, one in enumerate(serve)]
        found += [pod(f"shop-{number}-{at}", "shop", {}, on=train[3], owner=SHOP) for at in range(5)]
        found += [pod(f"agent-{number}-{at}", "kube-system", {}, on=one, owner=AGENT) for at, one in enumerate((*train, *serve))]
        small = {"karpenter.k8s.aws/instance-family": "g5"}
        found += [
            pod(f"forgot-{number}", "web", {GPU: 1}, owner=LLM, nodeSelector=small),
            pod(f"sixteen-{number}", "research", {GPU: 16}, owner=("batch/v1", "Job", "sixteen")),
            pod(f"slice-{number}", "research", {"nvidia.com/mig-1g.5gb": 1}, owner=("batch/v1", "Job", "slice")),
            pod(f"typo-{number}", "shop", {"nvidia.com/gpus": 1}, owner=("batch/v1", "Job", "typo")),
            pod(f"odd-{number}", "shop", {"acme.example/vgpu": 1}, owner=("batch/v1", "Job", "odd")),
        ]
    return found
