"""How devices are offered."""

from __future__ import annotations

import pytest

from policies.facts.cluster_facts import ClusterFacts, FactEntry
from policies.facts.device_modes import (
    Advertised,
    AdvertisedTwice,
    Following,
    advertised,
    is_stale,
    keep_one,
    nobody_writes,
    offered_beside,
    offered_twice,
    published,
    stale_since,
    undiscovered,
    unmaintained,
)
from policies.facts.offered_devices import OfferedSlice, Offering, Stack
from tests.support.generators.random_worlds import catalog

GPU, AMD, NVIDIA = "nvidia.com/gpu", "amd.com/gpu", "gpu.nvidia.com"


def of(node: str, driver: str = NVIDIA, *, pool: str = "", generation: int = 1, devices: int = 8) -> OfferedSlice:
    return OfferedSlice(node=node, driver=driver, pool=pool or node, generation=generation, devices=devices)


def facts(nodes: dict[str, tuple[str, ...]], *slices: OfferedSlice) -> ClusterFacts:
    offerings = {name: Offering(resources=names) for name, names in nodes.items()}
    return ClusterFacts(offerings=offerings, slices={f"s{number}": one for number, one in enumerate(slices)})


def test_nodes_are_counted_by_vendor_and_by_what_offers_their_devices() -> None:
    """A vendor's devices, by the one, the other, or both; nodes without any are none."""
    world = facts(
        {"a": (GPU,), "b": (), "c": (GPU,), "d": ("nvidia.com/mig-1g.5gb",), "e": (AMD,), "f": ("x.io/y",)},
        of("b"),
        of("c"),
        of("d"),
        of("e"),
        of("f", "dra.net"),
    )
    found = advertised(world, catalog())
    assert found.nodes == (
        ("amd", "device-plugin", 1),
        ("nvidia", "both", 2),
        ("nvidia", "device-plugin", 1),
        ("nvidia", "dra", 2),
    )
    assert found.twice == (AdvertisedTwice(NVIDIA, (GPU, "nvidia.com/mig-1g.5gb"), "c"),)


def test_a_driver_that_publishes_nothing_there_takes_nothing() -> None:
    """No device, no accelerator's driver, a node of another name, a slice of no node, a node that is not known."""
    slices = of("a", devices=0), of("a", "compute-domain.nvidia.com"), of("A"), of("", pool="p"), of("gone")
    assert advertised(facts({"a": (GPU,)}, *slices), catalog()) == Advertised(nodes=(("nvidia", "device-plugin", 1),))


def test_slices_of_an_older_generation_are_void() -> None:
    """A driver that has stopped publishing leaves none of the newest."""
    world = facts({}, of("a", generation=1), of("a", generation=2, devices=3), of("a", generation=2, devices=4), of("b", pool="b"))
    assert published(world) == {"a": {NVIDIA: 7}, "b": {NVIDIA: 8}}


def test_shares_of_memory_are_no_devices() -> None:
    """HAMi's measures stand beside the devices that they are of."""
    assert offered_beside(NVIDIA, (GPU, "nvidia.com/gpumem", AMD), catalog()) == (GPU,)


def test_nothing_is_looked_for_anew_while_nothing_of_it_changes() -> None:
    """The answer is the very same object, so that statuses are not computed again."""
    following, world = Following(catalog()), facts({"a": (GPU,)}, of("a"))
    first, _ = following.update(world)
    assert first.twice == (AdvertisedTwice(NVIDIA, (GPU,), "a"),)
    more = world.changed([FactEntry("namespaces", "n", {}), FactEntry("slices", "s1", of("elsewhere"))])
    assert following.update(more)[0] is first
    assert following.update(more.changed((), [FactEntry("slices", "s0", None)]))[0].twice == ()


def test_sentences_tell_what_to_type() -> None:
    """The fact, and the fix within the first 200 characters or so."""
    text = offered_twice(AdvertisedTwice(NVIDIA, (GPU,), "node-7"))
    assert text.startswith("GPUs are offered twice, as nvidia.com/gpu and by gpu.nvidia.com in ResourceSlices (first on node node-7)")
    assert text.index("kubectl label node node-7 nvidia.com/gpu.deploy.device-plugin=false") < 200
    assert "gpu.amd.com" in keep_one("gpu.amd.com", "n")
    assert nobody_writes({"b", "a"}).startswith("labels a, b are not maintained: ")


CLUSTER, POLICY = ("GPUCluster", "gpu-cluster"), ("ClusterPolicy", "cluster-policy")
OLD, ALIVE = Offering(labelled=True, gpus=True, started=99), Offering(labelled=True, gpus=True, started=100)
UNTOLD, BARE, PLAIN = Offering(labelled=True, gpus=True), Offering(gpus=True), Offering()
DRA = {CLUSTER: Stack(100, discovers=False)}


def stack_facts(stacks: dict[tuple[str, str], Stack], *nodes: Offering) -> ClusterFacts:
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
    assert undiscovered(stack_facts(stacks, *nodes)) == certain
    assert bool(unmaintained(stack_facts(stacks, *nodes), catalog())) == certain


def test_the_keys_are_those_that_nodes_are_selected_by() -> None:
    """All of GPU Feature Discovery's, and not the operator's own mark."""
    keys = unmaintained(stack_facts(DRA, OLD), catalog())
    assert keys == {"nvidia.com/gpu.product", "nvidia.com/gpu.family", "nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.slices.gi"}


def test_a_nodes_labels_are_left_behind_if_they_are_older_than_the_gpucluster() -> None:
    """Without a time of either nothing is said."""
    assert [is_stale(one, stale_since(stack_facts(DRA))) for one in (OLD, ALIVE, UNTOLD, BARE)] == [True, False, False, False]
    assert not is_stale(OLD, stale_since(stack_facts(DRA | {POLICY: Stack(50, discovers=False)})))
    assert not is_stale(OLD, None)
