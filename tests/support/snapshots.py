"""Snapshots of policies that are parsed already, made at once."""

from __future__ import annotations

from collections.abc import Sequence

from catalog import Catalog
from policies.facts.cluster_facts import ClusterFacts
from policies.policy import PolicySet
from policies.state.snapshot import Snapshot
from policies.state.updater import Options, Updater
from policies.verdict import Mode


def build(
    policy_set: PolicySet,
    catalog: Catalog,
    *,
    platforms: Sequence[str] = (),
    mig_strategy: str = "mixed",
    queues: Sequence[str] = (),
    max_mode: Mode = "Enforce",
    cluster: ClusterFacts | None = None,
    all_nodes: bool = False,
) -> Snapshot:
    """The first snapshot of an updater that is given all of it. ``platforms``: names in the catalog. ``all_nodes``: ``cluster`` has all."""
    options = Options(platforms=tuple(platforms), mig_strategy=mig_strategy, queues=tuple(queues), max_mode=max_mode)
    return Updater(catalog, options).replace_all(policy_set, cluster or ClusterFacts(), all_nodes=all_nodes).snapshot
