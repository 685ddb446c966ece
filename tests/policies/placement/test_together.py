"""How many pods have places at once."""

from __future__ import annotations

from typing import Any

import pytest

from kube.node import Occupant
from kube.scheduling import Wants, wants
from policies.placement.fleet import Fleet, fleet_of
from policies.placement.together import room_for
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling.node_pools import node_pool, of_families, tables

GPU = "nvidia.com/gpu"


def _node(name: str, count: int = 8, labels: dict[str, str] | None = None, pods: int = 10) -> dict[str, Any]:
    amounts = {GPU: count, "cpu": "8", "pods": pods}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels or {}}, "status": {"allocatable": amounts}}


def _fleet(*counts: int, occupants: Any = (), pools: Any = ()) -> Fleet:
    nodes = [_node(f"n{i}", count, pods=3) for i, count in enumerate(counts)]
    return fleet_of([*nodes, *pools], catalog=catalog(), tables=tables(), occupants=occupants)


def _pods(gpus: int, cpu: str = "1", port: int | None = None) -> Wants:
    ports = [{"hostPort": port}] if port else []
    return wants({"spec": {"containers": [{"resources": {"limits": {GPU: gpus}, "requests": {"cpu": cpu}}, "ports": ports}]}})


@pytest.mark.parametrize(
    ("pods", "counts", "expected"),
    [
        ([(_pods(8), 2)], (8, 8), "now"),
        ([(_pods(8), 2)], (8,), "unknown"),
        ([(_pods(1), 3)], (8,), "now"),
        ([(_pods(1), 4)], (8,), "unknown"),
        ([(_pods(1, "5"), 2)], (8,), "unknown"),
        ([(_pods(1), 1), (_pods(8), 1)], (8, 1), "now"),
        ([(_pods(1, port=80), 2)], (8,), "unknown"),
        ([(_pods(1, port=80), 2)], (8, 8), "now"),
    ],
)
def test_all_pods_at_once(pods: list[tuple[Wants, int]], counts: tuple[int, ...], expected: str) -> None:
    """By devices, CPU, the number of pods of a node and ports of the host; the largest come first."""
    assert room_for(pods, _fleet(*counts)).outlook == expected


def test_what_others_hold_may_become_free() -> None:
    """Two nodes are enough, once the pod on one of them is gone."""
    assert room_for([(_pods(8), 2)], _fleet(8, 8, occupants=[Occupant("n1", {GPU: 1})])) == (2, 1, 2, "later")
    assert room_for([(_pods(8), 2)], _fleet(8, 8, occupants=None)) == (2, None, 2, "now")


def test_karpenter_makes_a_machine_for_each() -> None:
    """However many there are; of pods that no NodePool makes a machine for, nodes bound the number."""
    fleet = _fleet(pools=[node_pool("gpu", requirements=[of_families("p5")])])
    assert room_for([(_pods(8), 50)], fleet) == (50, None, None, "now")
    other = wants({"spec": {"containers": [{"resources": {"limits": {"amd.com/gpu": 1}}}]}})
    assert room_for([(_pods(8), 50), (other, 2)], fleet) == (52, 50, 50, "unknown")


def _rooms(count: int, *objects: dict[str, Any], occupants: Any = ()) -> tuple[int | None, int | None]:
    wanted = wants({"spec": {"containers": [{"resources": {"limits": {GPU: count}}}]}})
    places = fleet_of(objects, catalog=catalog(), tables=tables(), occupants=occupants)
    return room_for([(wanted, 100)], places)[1:3]


def test_each_node_has_room_for_what_is_free_on_it() -> None:
    """Now, and when nothing else runs; the number of pods on a node is a bound too."""
    nodes = _node("a"), _node("b"), _node("c", 4)
    assert _rooms(8, *nodes) == (2, 2)
    assert _rooms(3, *nodes) == (5, 5)
    assert _rooms(8, *nodes, occupants=[Occupant("a", {GPU: 1})]) == (1, 2)
    assert _rooms(1, _node("a", 40)) == (10, 10)


def test_what_is_not_known_or_may_be_added_is_no_number() -> None:
    """A NodePool that makes machines, a cloud's autoscaler, nodes whose pods are not known."""
    assert _rooms(8, _node("a"), node_pool("p", requirements=[of_families("p4d")])) == (None, None)
    assert _rooms(16, _node("a"), node_pool("p", requirements=[of_families("p4d")])) == (0, 0)
    assert _rooms(8, _node("a", labels={"cloud.google.com/gke-nodepool": "p"})) == (None, None)
    assert _rooms(8, _node("a"), occupants=None) == (None, 1)


def test_limits_of_a_nodepool_bound_the_machines() -> None:
    """Of four pods with eight GPUs a limit of 16 leaves two without a machine; what no pod asks for bounds nothing here."""

    def fleet(**limits: str) -> Fleet:
        return _fleet(pools=[node_pool("gpu", requirements=[of_families("p5")], limits=limits)])

    assert room_for([(_pods(8), 4)], fleet(**{GPU: "16"})) == (4, 2, 2, "unknown")
    assert room_for([(_pods(8), 4)], fleet(**{GPU: "32"})).outlook == "now"
    assert room_for([(_pods(8, "100"), 1), (_pods(8, "60"), 2)], fleet(cpu="400")).outlook == "now"
    assert room_for([(_pods(8), 4)], fleet(memory="4Ti")).outlook == "now"
