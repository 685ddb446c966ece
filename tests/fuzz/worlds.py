"""The snapshots under which bodies are judged: the shipped library, and policies of every kind and mode."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

from documents.files import read_policies
from policies.policy import PolicySet
from policies.state.snapshot import Snapshot
from policies.verdict import MODES
from tests.support.generators import random_worlds
from tests.support.generators.random_cluster import CLUSTER
from tests.support.generators.random_worlds import World, catalog
from tests.support.snapshots import build

LIBRARY = Path(__file__).parent.parent.parent / "policies" / "library"
PLATFORMS = ("karpenter-aws", "gke", "gfd")
RANDOM_WORLDS = 6


@cache
def shipped() -> PolicySet:
    """Every policy of the library."""
    found, errors, _ = read_policies([str(LIBRARY)], catalog())
    assert errors == []
    return found


@cache
def worlds() -> tuple[World, ...]:
    """The library alone; the same without platforms; the library among random policies, templates and modes."""
    plain = World(policy_set=shipped(), platforms=PLATFORMS, mig_strategy="mixed", queues=("kueue",), cluster=CLUSTER)
    unplaced = World(policy_set=shipped(), platforms=(), mig_strategy="single", queues=(), cluster=CLUSTER)
    return (plain, unplaced, *(_mixed(Random(seed)) for seed in range(RANDOM_WORLDS)))


def _mixed(random: Random) -> World:
    """Three random worlds' policies and templates in one; every other one has the library too."""
    drawn = [random_worlds.world(random, MODES) for _ in range(3)]
    named = {t.name: t for world in drawn for t in world.policy_set.templates}
    policies = {p.id: p for world in drawn for p in world.policy_set.policies}
    if random.random() < 0.5:
        policies |= {p.id: p for p in shipped().policies}
    policy_set = PolicySet(policies=tuple(policies.values()), templates=tuple(named.values()))
    return World(
        policy_set=policy_set, platforms=drawn[0].platforms or PLATFORMS, mig_strategy=drawn[0].mig_strategy, queues=drawn[0].queues,
        cluster=CLUSTER,
    )  # fmt: skip


@cache
def snapshots() -> tuple[Snapshot, ...]:
    """One of each world, kept: what is remembered of earlier bodies is part of what is tried."""
    return tuple(world.snapshot for world in worlds())


def fresh(number: int) -> Snapshot:
    """The snapshot of that number again, which has seen nothing."""
    world = worlds()[number]
    return build(
        world.policy_set, catalog(), platforms=world.platforms, mig_strategy=world.mig_strategy, queues=world.queues, cluster=world.cluster
    )
