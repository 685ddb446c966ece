"""A large cluster, as platform teams have them: 500 nodes in ten groups on EKS with Karpenter, 10,000 pods of 60 namespaces, 200
policies. Seeded: the same every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from analysis.world.world import World
from tests.support.console.large_policies import policies_for
from tests.support.console.worlds import world
from tests.support.recorded.parts import GPU, TAINT, TOLERATION, Raw, node, pod

NODES, PODS, POLICIES, NAMESPACES = 500, 10_000, 200, 60
MIG = "nvidia.com/mig-1g.10gb"
SHARED = "nvidia.com/gpu.shared"
TEAM: Raw = {"key": "team", "value": "research", "effect": "NoSchedule"}
_OWNERS = (
    ("batch/v1", "Job"),
    ("kubeflow.org/v1", "PyTorchJob"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("ray.io/v1", "RayCluster"),
)


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """Nodes of one NodePool. ``share``: of all nodes, in thousandths; ``asks``: what pods on them ask for."""

    pool: str
    machine: str
    product: str
    family: str
    resource: str
    devices: int
    share: int
    asks: Sequence[int]
    spot: bool = False
    taints: Sequence[Raw] = (TAINT,)
    limit: int | None = None


KINDS = (
    _Kind(pool="train-h100", machine="p5.48xlarge", product="NVIDIA-H100-80GB-HBM3", family="hopper", resource=GPU, devices=8, share=90,
          asks=(8, 8, 4, 2, 1), taints=(TAINT, TEAM), limit=400),
    _Kind(pool="train-a100", machine="p4de.24xlarge", product="NVIDIA-A100-SXM4-80GB", family="ampere", resource=GPU, devices=8, share=90,
          asks=(8, 4, 2, 1), limit=512),
    _Kind(pool="spot-a100", machine="p4d.24xlarge", product="NVIDIA-A100-SXM4-40GB", family="ampere", resource=GPU, devices=8, share=100,
          asks=(8, 4, 1, 1), spot=True, taints=()),
    _Kind(pool="slices", machine="p4de.24xlarge", product="NVIDIA-A100-SXM4-80GB", family="ampere", resource=MIG, devices=56, share=200,
          asks=(1,)),
    _Kind(pool="shared-t4", machine="g4dn.12xlarge", product="Tesla-T4-SHARED", family="turing", resource=SHARED, devices=32, share=170,
          asks=(1,)),
    _Kind(pool="serve-l4", machine="g6.12xlarge", product="NVIDIA-L4", family="ada-lovelace", resource=GPU, devices=4, share=120,
          asks=(1, 1, 2), limit=320),
    _Kind(pool="serve-a10g", machine="g5.2xlarge", product="NVIDIA-A10G", family="ampere", resource=GPU, devices=1, share=110, asks=(1,),
          spot=True, limit=128),
    _Kind(pool="own-l40s", machine="acme.l40s", product="NVIDIA-L40S", family="ada-lovelace", resource=GPU, devices=8, share=30,
          asks=(4, 2, 1), taints=()),
    _Kind(pool="general", machine="m6i.4xlarge", product="", family="", resource="", devices=0, share=90, asks=(), taints=()),
)  # fmt: skip
_CLOUD = {
    "NVIDIA-H100-80GB-HBM3": ("h100", "81920"),
    "NVIDIA-A100-SXM4-80GB": ("a100", "81920"),
    "NVIDIA-A100-SXM4-40GB": ("a100", "40960"),
    "Tesla-T4-SHARED": ("t4", "16384"),
    "NVIDIA-L4": ("l4", "22888"),
    "NVIDIA-A10G": ("a10g", "22888"),
    "NVIDIA-L40S": ("l40s", "45776"),
}
"""Product -> the labels by which Karpenter names it and its memory, in MiB."""
EMPTY = _Kind(pool="burst-l40s", machine="g6e.12xlarge", product="NVIDIA-L40S", family="ada-lovelace", resource=GPU, devices=4, share=0,
              asks=(), spot=True, limit=64)  # fmt: skip
"""A NodePool without nodes, of which Karpenter could make some."""


def namespaces() -> list[str]:
    """Names of the namespaces."""
    return [f"team-{number:02}" for number in range(NAMESPACES)]


@cache
def large_world(nodes: int = NODES, pods: int = PODS, policies: int = POLICIES) -> World:
    """The world of such a cluster: the same object for the same numbers. The largest takes 15 s to make: tests ask for smaller ones."""
    return world(large_objects(nodes, pods), large_policies(policies))


def large_policies(count: int = POLICIES, seed: int = 1) -> list[Raw]:
    """Policies of the cluster and of namespaces, in Audit, Warn and Enforce, that fit the cluster."""
    return policies_for(Random(seed), count, namespaces())


def large_objects(nodes: int = NODES, pods: int = PODS, seed: int = 1) -> list[Raw]:
    """The objects of the cluster: namespaces, NodePools, nodes, and pods that fit on them or wait."""
    random = Random(seed)
    made = [(kind, one) for kind in KINDS for one in _nodes(kind, nodes, random)]
    found = [_namespace(name, random) for name in namespaces()]
    found += [_pool(kind, sum(one is kind for one, _ in made)) for kind in (*KINDS, EMPTY)]
    found += [one for _, one in made]
    return [*found, *_pods(made, pods, random)]


def _namespace(name: str, random: Random) -> Raw:
    labels = {"kubernetes.io/metadata.name": name, "team": random.choice(("research", "web", "vision"))}
    labels["environment"] = random.choice(("dev", "production", "production"))
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _pool(kind: _Kind, nodes: int) -> Raw:
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [kind.machine]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"] if kind.spot else ["on-demand"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    template = {"nodeClassRef": reference, "requirements": requirements, "taints": list(kind.taints), "expireAfter": "720h"}
    spec: Raw = {
        "template": {"spec": template},
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"},
    }
    if kind.limit is not None:
        spec["limits"] = {GPU: str(kind.limit)}
    made = {"nodes": str(nodes), "cpu": str(192 * nodes), GPU: str(kind.devices * nodes if kind.resource == GPU else 0)}
    status = {"resources": made}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": kind.pool}, "spec": spec, "status": status}


def _nodes(kind: _Kind, every: int, random: Random) -> Iterator[Raw]:
    count = every * kind.share // 1000 if kind is not KINDS[-1] else every - sum(every * one.share // 1000 for one in KINDS[:-1])
    for number in range(count):
        labels = {
            "karpenter.sh/nodepool": kind.pool,
            "karpenter.sh/capacity-type": "spot" if kind.spot else "on-demand",
            "node.kubernetes.io/instance-type": kind.machine,
            "karpenter.k8s.aws/instance-family": kind.machine.partition(".")[0],
            "topology.kubernetes.io/zone": random.choice(("eu-west-1a", "eu-west-1b")),
        }
        if kind.product:
            labels |= {"nvidia.com/gpu.product": kind.product, "nvidia.com/gpu.family": kind.family, "nvidia.com/gpu.present": "true"}
            name, memory = _CLOUD[kind.product]
            labels |= {"karpenter.k8s.aws/instance-gpu-name": name, "karpenter.k8s.aws/instance-gpu-memory": memory}
            labels |= {"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia"}
        if kind.resource == SHARED:
            labels |= {"nvidia.com/gpu.replicas": "8", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
        if kind.resource == MIG:
            labels |= {"nvidia.com/mig.strategy": "mixed", "nvidia.com/mig.config": "all-1g.10gb"}
            labels["nvidia.com/mig.config.state"] = "failed" if number == 1 else "success"
        made = node(f"{kind.pool}-{number:03}", labels, {kind.resource: kind.devices} if kind.devices else {}, *kind.taints, cpu="192")
        _spoil(made, kind, number, random)
        yield made


def _spoil(made: Raw, kind: _Kind, number: int, random: Random) -> None:
    """Cordon a node, break one of its devices, or let it be gone: one of some thirty each."""
    if not kind.devices or number == 0:
        return
    drawn = random.randrange(32)
    if drawn == 0:
        made["spec"]["unschedulable"] = True
        made["spec"].setdefault("taints", [])
        made["spec"]["taints"] = [*made["spec"]["taints"], {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    elif drawn == 1:
        made["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
        made["spec"]["taints"] = [*made["spec"].get("taints", ()), {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]
    elif drawn == 2 and kind.devices > 1:
        made["status"]["allocatable"] = {**made["status"]["allocatable"], kind.resource: str(kind.devices - 1)}


def _pods(made: Sequence[tuple[_Kind, Raw]], every: int, random: Random) -> list[Raw]:
    """Fill most nodes, a workload of a dozen pods after another; some pods wait, and plain ones are the rest."""
    places = [
        (kind, one["metadata"]["name"], int(one["status"]["allocatable"].get(kind.resource, 0))) for kind, one in made if kind.devices
    ]
    slots = [(kind, name) for kind, name, most in places for _ in range(most)]
    random.shuffle(slots)
    free = {name: _filled(most, random) for _, name, most in places}
    found: list[Raw] = []
    waiting = every // 25
    for kind, name in slots:
        wanted = random.choice([one for one in kind.asks if one <= free[name]] or [0])
        if len(found) >= every - waiting:
            break
        if wanted and random.random() < 0.97:
            free[name] -= wanted
            found.append(_pod(len(found), kind, wanted, name))
    while len(found) < every:
        if waiting > 0:
            waiting -= 1
            found.append(_pod(len(found), random.choice(KINDS[:-1]), random.choice((1, 4, 8, 16)), ""))
        else:
            on = random.choice(made)[1]["metadata"]["name"]
            found.append(pod(f"plain-{len(found)}", random.choice(namespaces()), {}, on=on, owner=("apps/v1", "DaemonSet", "agent")))
    return found


def _filled(most: int, random: Random) -> int:
    """Return how many devices of a node are to be held: of most nodes all, of some none."""
    drawn = random.random()
    return 0 if drawn < 0.08 else most if drawn < 0.75 else random.randrange(most + 1)


def _pod(number: int, kind: _Kind, wanted: int, on: str) -> Raw:
    workload = number // 12
    seeded = Random(workload)
    version, owner = seeded.choice(_OWNERS)
    tolerations = [TOLERATION] if kind.taints and seeded.random() < 0.9 else []
    tolerations += [{**TEAM, "operator": "Equal"}] if TEAM in kind.taints else []
    spec: Raw = {"tolerations": tolerations} if tolerations else {}
    if seeded.random() < 0.5:
        spec["nodeSelector"] = {"karpenter.sh/nodepool": kind.pool}
    if seeded.random() < 0.3:
        spec["terminationGracePeriodSeconds"] = 600
    says = {"berth.dev/expected-duration": seeded.choice(("45m", "6h", "3d"))} if seeded.random() < 0.3 else None
    namespace = namespaces()[min(seeded.randrange(NAMESPACES), seeded.randrange(NAMESPACES))]
    name = f"{owner.lower()}-{workload:04}"
    labels = {"app": name, "tier": seeded.choice(("batch", "web"))}
    return pod(
        f"{name}-{number}", namespace, {kind.resource: wanted}, on=on, owner=(version, owner, name), labels=labels, annotations=says, **spec
    )
