"""What is known of a cluster's places: bounded, the same while the same is offered, and None where there may be others."""

from __future__ import annotations

from typing import Any

from policies.facts.cluster_facts import ClusterFacts
from policies.facts.places import MOST_KINDS, KnownPlaces, NodePlace, known, pool_spec
from policies.state.updater import Options, Updater
from tests.support.cases.golden import catalog_with

Raw = dict[str, Any]
CATALOG = catalog_with()


def node(name: str, *, gpus: int = 4, taints: tuple[Raw, ...] = (), **labels: str) -> Raw:
    metadata = {"name": name, "labels": {key.replace("__", "/"): value for key, value in labels.items()}}
    return {"kind": "Node", "metadata": metadata, "spec": {"taints": list(taints)}, "status": {"capacity": {"nvidia.com/gpu": str(gpus)}}}


def places(updater: Updater, *, all_nodes: bool = True, **objects: Raw | None) -> KnownPlaces | None:
    """After a change of these nodes."""
    changes = {("Node", "", name): value for name, value in objects.items()}
    return updater.apply(changes, all_nodes=all_nodes).snapshot.known_places


def test_nodes_of_a_kind_that_is_there_change_nothing() -> None:
    """What was decided is found again: the very same object stands in its key, until a kind comes or the last of one goes."""
    updater = Updater(CATALOG, Options(platforms=("gfd",)))
    first = places(updater, a=node("a"))
    assert first is not None
    assert places(updater, b=node("b"), c=node("c", example__rack="7")) is first
    assert places(updater, a=None, b=None) is first
    starting = ({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},)
    assert places(updater, d=node("d", taints=starting)) is first
    more = places(updater, e=node("e", gpus=8))
    assert more not in (None, first)
    assert places(updater, e=None) == first
    assert hash(places(updater, f=node("f"))) == hash(first)


def test_the_key_of_a_decision_holds_though_kinds_change() -> None:
    """Nothing that was decided is thrown away for it."""
    updater = Updater(CATALOG, Options(platforms=("gfd",)))
    places(updater, a=node("a"))
    assert updater.apply({("Node", "", "b"): node("b", gpus=8)}, all_nodes=True).decisions_hold


def test_rights_that_end_end_what_is_said() -> None:
    """And begin it again, with no change of the nodes."""
    updater = Updater(CATALOG, Options(platforms=("gfd",)))
    assert places(updater, a=node("a")) is not None
    assert places(updater, all_nodes=False) is None
    assert places(updater) is not None


def test_too_many_kinds_are_not_judged() -> None:
    """A cluster of nothing but odd ones costs no more than others."""
    kinds = [NodePlace(devices=(("nvidia.com/gpu", number),)) for number in range(1, MOST_KINDS + 2)]
    assert known(kinds[:-1], {}, lambda _: False, lambda _: True) is not None
    assert known(kinds, {}, lambda _: False, lambda _: True) is None


def test_only_accelerators_are_devices() -> None:
    """Network cards and fuse devices make no kind of their own, and their nodes are no places for GPUs."""
    facts = ClusterFacts.from_objects([node("a"), {**node("b"), "status": {"capacity": {"smarter-devices/fuse": "20"}}}])
    found = known(facts.places.values(), {}, lambda _: False, lambda name: name == "nvidia.com/gpu")
    assert found is not None
    assert {kind.devices for kind in found.kinds} == {(("nvidia.com/gpu", 4),)}
    assert found.resources == {"nvidia.com/gpu"}


def test_startup_taints_pass() -> None:
    """Those that a NodePool names are gone once the node has started; its spec is compared without its status."""
    spec = {"template": {"spec": {"startupTaints": [{"key": "example.com/agent", "effect": "NoSchedule"}]}}}
    one = {"metadata": {"name": "p"}, "spec": spec, "status": {"resources": {"nodes": "1"}}}
    assert pool_spec(one) == pool_spec({**one, "status": {"resources": {"nodes": "2"}}})
    facts = ClusterFacts.from_objects([node("a", taints=({"key": "example.com/agent", "effect": "NoSchedule"},), karpenter__sh="x")])
    found = known(facts.places.values(), {"p": pool_spec(one)}, lambda _: False, lambda _: True)
    assert found is not None
    assert {kind.taints for kind in found.kinds} == {()}


def test_odd_objects_raise_nothing() -> None:
    """Whatever a node or a NodePool holds."""
    deep: Raw = {}
    inner = deep
    for _ in range(5000):
        inner["x"] = {}
        inner = inner["x"]
    amounts = {"nvidia.com/gpu": [], 5: "x", "a/b": "1e400"}
    odd: list[Raw] = [
        {"kind": "Node", "metadata": {"name": "a"}, "spec": {"providerID": 5}, "status": {"capacity": amounts}},
        {"kind": "NodePool", "metadata": {"name": "p"}, "spec": {"template": {"spec": {"requirements": deep, "startupTaints": "x"}}}},
        {"kind": "NodePool", "metadata": {"name": "q"}, "spec": {"limits": 5, "template": []}},
    ]
    facts = ClusterFacts.from_objects(odd)
    known(facts.places.values(), facts.pool_specs, lambda _: False, lambda _: True)
