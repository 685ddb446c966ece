"""Random policies, templates and cluster facts: every field of every kind, the odd and the hostile ones too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from random import Random

from catalog import Catalog
from catalog.platforms import Sharing
from documents.files import read_catalog
from kube.labels import Expression, LabelSelector
from kube.taints import Taint
from policies.facts.cluster_facts import ClusterFacts
from policies.policy import Allow, Bounds, Default, Match, NodeTemplate, Policy, PolicySet, Require
from policies.state.snapshot import Snapshot
from policies.verdict import MODES, Mode
from tests.support.counts import PROVE
from tests.support.generators.random_cluster import CLUSTER, DEAD_LABELS, NAMESPACES
from tests.support.generators.random_fields import SHARINGS, capacities, chance, default, machine, patterns, require, some
from tests.support.snapshots import build

USERS = ("system:serviceaccount:team-a:default", "system:serviceaccount:ci:runner", "anna")
GROUNDS = 64
"""how many grounds ``make test`` knows; ``tests/test_examples.py`` counts that each feature is among them"""
PLATFORMS = ("karpenter-aws", "eks-auto", "eks-nodegroup", "hyperpod", "gke", "aks", "karpenter-azure", "gfd")


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

    @cached_property
    def snapshot(self) -> Snapshot:
        """Built once: a law asks it several times."""
        return build(
            self.policy_set,
            catalog(),
            platforms=self.platforms,
            mig_strategy=self.mig_strategy,
            queues=self.queues,
            cluster=self.cluster,
        )


SELECTORS = (
    LabelSelector(match_labels=(("team", "research"),)),
    LabelSelector(match_expressions=(Expression(key="environment", operator="NotIn", values=("dev",)),)),
    LabelSelector(match_expressions=(Expression(key="tier", operator="Exists"),)),
    LabelSelector(match_expressions=(Expression(key="kubernetes.io/metadata.name", operator="In", values=("team-a", "dev")),)),
    LabelSelector(),
)
POD_SELECTORS = (
    LabelSelector(match_labels=(("tier", "batch"),)),
    LabelSelector(match_expressions=(Expression(key="tier", operator="DoesNotExist"),)),
)
WORKLOADS = ("Job", "Deployment", "StatefulSet", "DaemonSet", "Notebook", "PyTorchJob", "RayCluster", "InferenceService")


def match(random: Random, *, cluster: bool, requires: bool) -> Match:
    """In a ClusterGPUPolicy with ``require`` authors' labels and owners don't choose: the parser denies it."""
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
        labels=random.choice(
            ((("karpenter.sh/nodepool", f"gpu-{name}"),), (("pool", name), ("tier", "gpu")), (("karpenter.sh/nodepool", "gpu-a100"),))
        ),
        taints=some(
            random, (Taint(key="pool", value=name), Taint(key="gpu-only", effect="NoExecute"), Taint(key="node.kubernetes.io/odd")), 0, 2
        ),
    )


def policy(
    random: Random, index: int, templates: Sequence[str], modes: Sequence[Mode] = ("Enforce",), namespace: str | None = None
) -> Policy:
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
        allow=allow(random, templates) if cluster else Allow(),
    )


def allow(random: Random, templates: Sequence[str]) -> Allow:
    return Allow(
        node_templates=some(random, templates) if templates and chance(random, 0.6) else (),
        tolerations=patterns(random, 0.5),
        priority_classes=some(random, ("gpu", "low"), 1, 2) if chance(random, 0.3) else (),
    )


def policies(random: Random, templates: Sequence[str], modes: Sequence[Mode] = ("Enforce",)) -> list[Policy]:
    found = [policy(random, i, templates, modes) for i in range(random.randint(1, 3))]
    own = random.choice((0, 0, 1, 2))
    return found + [policy(random, i, templates, modes, random.choice(NAMESPACES)) for i in range(own)]


@dataclass(frozen=True, kw_only=True)
class Ground:
    """All of a world but its policies: building its tables of offers costs five times as much as compiling the policies."""

    templates: tuple[NodeTemplate, ...]
    platforms: tuple[str, ...]
    mig_strategy: str
    queues: tuple[str, ...]
    cluster: ClusterFacts


def ground(random: Random) -> Ground:
    """Draw up to two templates, up to three platforms and a cluster: whole, unknown, or one whose GPU labels nobody maintains."""
    chosen = some(random, PLATFORMS, 1, random.choice((1, 1, 2, 3))) if chance(random, 0.93) else ()
    return Ground(
        templates=tuple(template(random, f"t{i}") for i in range(random.choice((0, 1, 1, 2)))),
        platforms=tuple(name for name in PLATFORMS if name in chosen),
        mig_strategy=random.choice(("mixed", "mixed", "single")),
        queues=random.choice(((), (), ("kueue",), ("kueue", "slurm-bridge"))),
        cluster=random.choice((CLUSTER, CLUSTER, CLUSTER, DEAD_LABELS, ClusterFacts())),
    )


def world(random: Random, modes: Sequence[Mode] = ("Enforce",), *, fresh: bool = PROVE) -> World:
    """Draw policies on a ground: a new one if ``fresh``, as under ``make prove``, else one of ``GROUNDS``, whose tables are built once."""
    base = ground(random if fresh else Random(random.randrange(GROUNDS)))
    drawn = sorted(policies(random, [t.name for t in base.templates], modes), key=lambda p: p.id)
    return World(
        policy_set=PolicySet(policies=tuple(drawn), templates=base.templates),
        platforms=base.platforms,
        mig_strategy=base.mig_strategy,
        queues=base.queues,
        cluster=base.cluster,
    )


def maintained(base: World) -> World:
    """The same world, whose labels are all maintained: the reference evaluator knows of no others."""
    return replace(base, cluster=CLUSTER) if base.cluster is DEAD_LABELS else base


def with_policies(base: World, found: Sequence[Policy]) -> World:
    """The same world under other policies."""
    return replace(base, policy_set=PolicySet(policies=tuple(found), templates=base.policy_set.templates))


AUDITED: tuple[Mode, ...] = MODES
