"""Random policies, templates and cluster facts: every field of every kind, the odd and the hostile ones too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Literal, TypeVar

from policies import snapshot
from policies.catalog import Catalog
from policies.cluster_facts import ClusterFacts
from policies.policy import (
    Allow,
    Bounds,
    Capacity,
    Default,
    DeviceLimit,
    InNotIn,
    LabelExpression,
    LabelSelector,
    LongRuns,
    Machine,
    Match,
    MigDefault,
    NodeTemplate,
    Policy,
    PolicySet,
    Require,
    Sharing,
    Taint,
    TolerationPattern,
)
from policies.verdict import MODES, Mode
from webhook.files import read_catalog

T = TypeVar("T")
NAMESPACES = ("team-a", "team-b", "dev")
USERS = ("system:serviceaccount:team-a:default", "system:serviceaccount:ci:runner", "anna")
PLATFORMS = ("karpenter-aws", "eks-auto", "eks-nodegroup", "gke", "aks", "karpenter-azure", "gfd")
CAPACITIES: tuple[Capacity, ...] = ("spot", "on-demand", "reserved")
SHARINGS: tuple[Sharing, ...] = ("Exclusive", "MIG", "TimeSliced")
NODES = {
    "node-t4": {"karpenter.k8s.aws/instance-gpu-name": "t4", "karpenter.k8s.aws/instance-family": "g4dn", "karpenter.sh/capacity-type": "spot"},
    "node-p5": {"karpenter.k8s.aws/instance-gpu-name": "h100", "karpenter.k8s.aws/instance-family": "p5", "karpenter.sh/capacity-type": "on-demand"},
    "node-gfd": {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.family": "turing", "nvidia.com/gpu.present": "true"},
    "node-gke": {"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-spot": "true"},
    "node-bare": {"zone": "a"},
}  # fmt: skip
CLUSTER = ClusterFacts(
    namespaces={"team-a": {"team": "research"}, "team-b": {"team": "web", "tier": "batch"}, "dev": {"environment": "dev"}},
    nodes=NODES,
    nodepool_grace={"gpu-a100": 1200, "default": None},
    device_classes={"gpu.nvidia.com": "gpu.nvidia.com", "odd": ""},
    claims={
        ("ResourceClaimTemplate", "team-a", "single-gpu"): (("gpu.nvidia.com", 1),),
        ("ResourceClaim", "team-a", "pair"): (("gpu.nvidia.com", 2),),
        ("ResourceClaimTemplate", "dev", "every"): (("gpu.nvidia.com", 0),),
        ("ResourceClaim", "team-b", "odd"): (("odd", 1),),
    },
)


@cache
def catalog() -> Catalog:
    """The shipped catalog."""
    return read_catalog()


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything but the pod."""

    policy_set: PolicySet
    platforms: tuple[str, ...]
    mig_strategy: str
    queues: tuple[str, ...]
    cluster: ClusterFacts

    def snapshot(self, policy_set: PolicySet | None = None) -> snapshot.Snapshot:
        return snapshot.build(
            self.policy_set if policy_set is None else policy_set,
            catalog(),
            platforms=self.platforms,
            mig_strategy=self.mig_strategy,
            queues=self.queues,
            cluster=self.cluster,
        )


def chance(random: Random, part: float) -> bool:
    return random.random() < part


def some(random: Random, values: Sequence[T], least: int = 1, most: int = 3) -> tuple[T, ...]:
    """A few different ones, in any order."""
    return tuple(random.sample(values, min(len(values), random.randint(least, most))))


def maybe(random: Random, part: float, make: Callable[[Random], T]) -> T | None:
    return make(random) if chance(random, part) else None


# --- fields ------------------------------------------------------------------------------------------------------------

FAMILIES = ("hopper", "ampere", "turing", "ada-lovelace", "blackwell", "volta", "cdna3")
MODELS = ("T4", "A100", "A100-40GB", "A100-80GB", "H100", "H100-80GB", "H100-94GB", "L4", "L40S", "A10G", "H200", "B200", "V520", "MI300X", "V100", "GH200")  # fmt: skip
INSTANCES = ("p4d", "p4de", "p5", "g4dn", "g5", "g6", "g4ad", "a2", "a3", "g2", "n1", "NCads_A100_v4", "x9")


def in_not_in(random: Random, names: Sequence[str]) -> InNotIn:
    """Never a list of which nothing is left: the parser refuses that."""
    match random.randrange(5):
        case 0 | 1:
            return InNotIn(in_=some(random, names))
        case 2 | 3:
            return InNotIn(not_in=some(random, names))
    in_ = some(random, names, 2, 4)
    rest = [name for name in names if name != in_[0]]
    return InNotIn(in_=in_, not_in=some(random, rest, 1, 2))


def memory(random: Random) -> Bounds:
    least = random.choice((16, 24, 40, 80))
    most = random.choice((24, 40, 80, 96, 180))
    kind = random.randrange(3)
    return Bounds(min=least if kind != 1 else None, max=max(least, most) if kind != 0 else None)


def machine(random: Random, part: float) -> Machine:
    return Machine(
        families=maybe(random, part, lambda r: in_not_in(r, FAMILIES)),
        models=maybe(random, part, lambda r: in_not_in(r, MODELS)),
        instance_families=maybe(random, part, lambda r: in_not_in(r, INSTANCES)),
        gpu_memory=maybe(random, part, memory),
    )


def long_runs(random: Random) -> LongRuns:
    return LongRuns(over=random.choice((3600, 7200, 14400)), capacity=some(random, CAPACITIES, 1, 2), unknown_is_long=chance(random, 0.6))


def capacities(random: Random) -> tuple[Capacity, ...]:
    return some(random, CAPACITIES, 1, 2)


def pattern(random: Random) -> TolerationPattern:
    return TolerationPattern(
        key=random.choice(("team", "team", "pool", "dedicated", "nvidia.com/gpu")),
        value=random.choice((None, "research", "web", "a100")),
        effect=random.choice((None, None, "NoSchedule", "NoExecute")),
    )


def patterns(random: Random, part: float) -> tuple[TolerationPattern, ...]:
    return tuple(pattern(random) for _ in range(random.randint(1, 2))) if chance(random, part) else ()


def device_limit(random: Random) -> DeviceLimit:
    kind = random.randrange(3)
    return DeviceLimit(max=random.choice((1, 2, 4, 8)) if kind != 1 else None, one_of=(1, 2, 4, 8) if kind else ())


def mig(random: Random) -> MigDefault:
    if chance(random, 0.2):
        return MigDefault(usable_mib=random.choice((4864, 9000, 19968)))
    return MigDefault(slice_gb=random.choice((5, 10, 10, 20, 40, 71, 12, 24)))


def equal(random: Random) -> tuple[Literal["accelerators", "cpuAndMemory"], ...]:
    return random.choice((("accelerators",), ("accelerators",), ("accelerators",), ("accelerators",), ("cpuAndMemory", "accelerators")))


def require(random: Random, part: float) -> Require:
    return Require(
        machine=machine(random, part * 0.6),
        capacity=capacities(random) if chance(random, part) else (),
        long_runs=maybe(random, part * 0.5, long_runs),
        sharing=some(random, SHARINGS, 1, 2) if chance(random, part) else (),
        gpus_per_pod=maybe(random, part * 0.7, device_limit),
        requests_equal_limits=equal(random) if chance(random, part) else (),
        grace_max=random.choice((60, 600, 3600)) if chance(random, part * 0.6) else None,
        protection_max=random.choice((3600, 86400)) if chance(random, part * 0.6) else None,
        forbid_tolerations=patterns(random, part * 0.6),
    )


def default(random: Random, part: float, templates: Sequence[str]) -> Default:
    return Default(
        accelerator_taints=chance(random, 0.5),
        node_template=random.choice(templates) if templates and chance(random, part * 0.6) else None,
        machine=machine(random, part * 0.35),
        capacity=capacities(random) if chance(random, part * 0.7) else (),
        long_runs=maybe(random, part * 0.5, long_runs),
        mig=maybe(random, part * 0.6, mig),
        grace=random.choice((30, 120, 1800)) if chance(random, part) else None,
        protect_for=random.choice((7200, 43200, "Always")) if chance(random, part) else None,
        tolerate=patterns(random, part),
        repair=("accelerators",) if chance(random, part) else (),
    )


SELECTORS = (
    LabelSelector(match_labels=(("team", "research"),)),
    LabelSelector(match_expressions=(LabelExpression(key="environment", operator="NotIn", values=("dev",)),)),
    LabelSelector(match_expressions=(LabelExpression(key="tier", operator="Exists"),)),
    LabelSelector(match_expressions=(LabelExpression(key="kubernetes.io/metadata.name", operator="In", values=("team-a", "dev")),)),
    LabelSelector(),
)
POD_SELECTORS = (
    LabelSelector(match_labels=(("tier", "batch"),)),
    LabelSelector(match_expressions=(LabelExpression(key="tier", operator="DoesNotExist"),)),
)
WORKLOADS = ("Job", "Deployment", "StatefulSet", "DaemonSet", "Notebook", "PyTorchJob", "RayCluster", "InferenceService")


def match(random: Random, *, cluster: bool, requires: bool) -> Match:
    """In a ClusterGPUPolicy with ``require`` authors' labels and owners don't choose: the parser refuses it."""
    free = not (cluster and requires)
    bounds = random.choice((Bounds(min=1), Bounds(min=2), Bounds(max=1), Bounds(min=1, max=8), Bounds(max=0)))
    return Match(
        namespace_selector=random.choice(SELECTORS) if cluster and chance(random, 0.3) else None,
        pod_selector=random.choice(POD_SELECTORS) if free and chance(random, 0.15) else None,
        workloads=some(random, WORKLOADS) if free and chance(random, 0.3) else (),
        gpus=bounds if chance(random, 0.25) else None,
    )


def template(random: Random, name: str) -> NodeTemplate:
    shared: tuple[Sharing, ...] = some(random, SHARINGS, 1, 2) if chance(random, 0.5) else ()
    profiles = some(random, ("1g.10gb", "1g.20gb", "3g.40gb", "1g.5gb", "1g.10gb+me"), 1, 2)
    return NodeTemplate(
        name=name,
        vendors=random.choice(((), ("nvidia",), ("nvidia",), ("amd",), ("nvidia", "amd"))),
        machine=machine(random, 0.25),
        sharing=shared,
        mig_profiles=profiles if "MIG" in shared and chance(random, 0.8) else (),
        capacity=capacities(random) if chance(random, 0.4) else (),
        labels=random.choice(((("karpenter.sh/nodepool", f"gpu-{name}"),), (("pool", name), ("tier", "gpu")), (("karpenter.sh/nodepool", "gpu-a100"),))),
        taints=some(random, (Taint(key="pool", value=name), Taint(key="gpu-only", effect="NoExecute"), Taint(key="node.kubernetes.io/odd")), 0, 2),
    )  # fmt: skip


def policy(random: Random, index: int, templates: Sequence[str], modes: Sequence[Mode] = ("Enforce",), namespace: str | None = None) -> Policy:
    cluster = namespace is None
    part = random.choice((0.15, 0.3, 0.6))
    required = require(random, part) if chance(random, 0.75) else Require()
    return Policy(
        name=f"p{index}",
        namespace=namespace,
        mode=random.choice(modes),
        match=match(random, cluster=cluster, requires=required != Require()),
        exclude_users=some(random, USERS, 1, 1) if cluster and chance(random, 0.1) else (),
        require=required,
        default=default(random, random.choice((0.15, 0.3, 0.6)), templates) if chance(random, 0.8) else Default(),
        allow=Allow(
            node_templates=some(random, templates) if templates and chance(random, 0.6) else (), tolerations=patterns(random, 0.5)
        ) if cluster else Allow(),
    )  # fmt: skip


def policies(random: Random, templates: Sequence[str], modes: Sequence[Mode] = ("Enforce",)) -> list[Policy]:
    found = [policy(random, i, templates, modes) for i in range(random.randint(1, 3))]
    for i in range(random.choice((0, 0, 1, 2))):
        found.append(policy(random, i, templates, modes, random.choice(NAMESPACES)))
    return found


def world(random: Random, modes: Sequence[Mode] = ("Enforce",)) -> World:
    names = [f"t{i}" for i in range(random.choice((0, 1, 1, 2)))]
    found = sorted(policies(random, names, modes), key=lambda p: p.id)
    chosen = some(random, PLATFORMS, 1, random.choice((1, 1, 2, 3))) if chance(random, 0.93) else ()
    return World(
        policy_set=PolicySet(policies=tuple(found), templates=tuple(template(random, name) for name in names)),
        platforms=tuple(name for name in PLATFORMS if name in chosen),
        mig_strategy=random.choice(("mixed", "mixed", "single")),
        queues=random.choice(((), (), ("kueue",), ("kueue", "slurm-bridge"))),
        cluster=CLUSTER if chance(random, 0.8) else ClusterFacts(),
    )


def with_policies(base: World, found: Sequence[Policy]) -> World:
    """The same world under other policies."""
    return replace(base, policy_set=PolicySet(policies=tuple(found), templates=base.policy_set.templates))


AUDITED: tuple[Mode, ...] = MODES
