"""Pods that are alike, placed together."""

from __future__ import annotations

from typing import Any

import pytest

from kube.node import Occupant
from kube.scheduling import wants
from policies.placement.fleet import fleet_of
from policies.placement.together import most_ever, pods_of, room_for
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling.node_pools import node_pool, of_families, tables

GPU = "nvidia.com/gpu"


def _node(name: str, count: int = 8, labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "labels": labels or {}}, "status": {"allocatable": {GPU: count, "pods": 10}}}


def _rooms(count: int, *objects: dict[str, Any], occupants: Any = ()) -> tuple[int | None, int | None]:
    wanted = wants({"spec": {"containers": [{"resources": {"limits": {GPU: count}}}]}})
    places = fleet_of(objects, catalog=catalog(), tables=tables(), occupants=occupants)
    return room_for(wanted, places), most_ever(wanted, places)


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


@pytest.mark.parametrize(
    ("value", "path", "pods"),
    [
        ({"spec": {"replicas": 3, "template": {}}}, ("spec", "template"), 3),
        ({"spec": {"parallelism": 4, "completions": 2, "template": {}}}, ("spec", "template"), 2),
        ({"spec": {"template": {}}}, ("spec", "template"), 1),
        (
            {"spec": {"replicatedJobs": [{"replicas": 2, "template": {"spec": {"parallelism": 4, "template": {}}}}]}},
            ("spec", "replicatedJobs", 0, "template", "spec", "template"),
            8,
        ),
        (
            {"spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": {}}}},
            ("spec", "leaderWorkerTemplate", "workerTemplate"),
            8,
        ),
        (
            {"spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 3, "template": {}}}}},
            ("spec", "pytorchReplicaSpecs", "Worker", "template"),
            3,
        ),
        (
            {"spec": {"workerGroupSpecs": [{"replicas": 2, "numOfHosts": 4, "template": {}}]}},
            ("spec", "workerGroupSpecs", 0, "template"),
            8,
        ),
        (
            {"spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "leaderTemplate": {}, "workerTemplate": {}}}},
            ("spec", "leaderWorkerTemplate", "workerTemplate"),
            6,
        ),
        ({"spec": {"replicas": 0, "template": {}}}, ("spec", "template"), 0),
        ({"spec": {"replicas": "many", "template": {}}}, ("spec", "template"), 1),
        ({"spec": {}}, (), 1),
    ],
)
def test_the_pods_of_a_workload_are_counted(value: dict[str, Any], path: tuple[Any, ...], pods: int) -> None:
    """Roles and groups multiply; a Job has no more pods at once than it has to complete."""
    assert pods_of(value, path) == pods
