"""How devices are offered."""

from __future__ import annotations

from policies.facts.cluster_facts import ClusterFacts, FactEntry
from policies.facts.offered_devices import OfferedSlice, Offering
from policies.modes.advertised import Advertised, AdvertisedTwice, advertised, offered_beside, published
from policies.modes.following import Following
from policies.modes.wording import keep_one, nobody_writes, offered_twice
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
