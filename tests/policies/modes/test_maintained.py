"""Labels that nobody maintains: only where all that is known says so."""

from __future__ import annotations

import pytest

from policies.facts.cluster_facts import ClusterFacts
from policies.facts.offered_devices import Offering, Stack
from policies.modes.maintained import is_stale, stale_since, undiscovered, unmaintained
from tests.support.generators.random_worlds import catalog

CLUSTER, POLICY = ("GPUCluster", "gpu-cluster"), ("ClusterPolicy", "cluster-policy")
OLD, ALIVE = Offering(labelled=True, gpus=True, started=99), Offering(labelled=True, gpus=True, started=100)
UNTOLD, BARE, PLAIN = Offering(labelled=True, gpus=True), Offering(gpus=True), Offering()
DRA = {CLUSTER: Stack(100, discovers=False)}


def facts(stacks: dict[tuple[str, str], Stack], *nodes: Offering) -> ClusterFacts:
    return ClusterFacts(stacks=stacks, offerings={f"n{number}": one for number, one in enumerate(nodes)})


@pytest.mark.parametrize(
    ("stacks", "nodes", "certain"),
    [
        ({}, (OLD, BARE), False),
        (DRA, (), False),
        (DRA, (PLAIN,), False),
        (DRA, (OLD,), True),
        (DRA, (BARE, PLAIN), True),
        (DRA, (OLD, BARE, PLAIN), True),
        (DRA, (OLD, ALIVE), False),
        (DRA, (OLD, UNTOLD), False),
        ({CLUSTER: Stack(None, discovers=False)}, (OLD,), False),
        ({CLUSTER: Stack(None, discovers=False)}, (BARE,), False),
        (DRA | {POLICY: Stack(50, discovers=True)}, (OLD,), False),
        (DRA | {POLICY: Stack(50, discovers=False)}, (OLD,), False),
        ({POLICY: Stack(50, discovers=True)}, (BARE,), False),
        ({POLICY: Stack(50, discovers=False)}, (BARE,), True),
        ({POLICY: Stack(50, discovers=False)}, (BARE, UNTOLD), False),
        ({POLICY: Stack(50, discovers=False), ("ClusterPolicy", "b"): Stack(50, discovers=True)}, (BARE,), False),
    ],
)
def test_it_is_certain_only_where_every_node_shows_it(
    stacks: dict[tuple[str, str], Stack], nodes: tuple[Offering, ...], *, certain: bool
) -> None:
    """A GPUCluster runs no GPU Feature Discovery, a ClusterPolicy may be told not to; whoever runs it without the operator is seen by a
    node with labels of it that are young, or that tell no time."""
    assert undiscovered(facts(stacks, *nodes)) == certain
    assert bool(unmaintained(facts(stacks, *nodes), catalog())) == certain


def test_the_keys_are_those_that_nodes_are_selected_by() -> None:
    """All of GPU Feature Discovery's, and not the operator's own mark."""
    keys = unmaintained(facts(DRA, OLD), catalog())
    assert keys == {"nvidia.com/gpu.product", "nvidia.com/gpu.family", "nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.slices.gi"}


def test_a_nodes_labels_are_left_behind_if_they_are_older_than_the_gpucluster() -> None:
    """Without a time of either nothing is said."""
    assert [is_stale(one, stale_since(facts(DRA))) for one in (OLD, ALIVE, UNTOLD, BARE)] == [True, False, False, False]
    assert not is_stale(OLD, stale_since(facts(DRA | {POLICY: Stack(50, discovers=False)})))
    assert not is_stale(OLD, None)
