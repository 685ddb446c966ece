"""Nodes with what is free on them, in groups."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from kube.node import Occupant, group_nodes, nodes, occupant, read_node, slimmed_node
from tests.support.scheduling import random_places


def _node(name: str, **parts: Any) -> dict[str, Any]:
    status = {"allocatable": {"cpu": "4", "nvidia.com/gpu": "2", "pods": "10"}, **parts.pop("status", {})}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **parts.pop("labels", {})}},
        "spec": parts,
        "status": status,
    }


def test_what_is_bound_is_not_free() -> None:
    """Each pod takes its requests and one of pods; a finished one nothing."""
    container = {"resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "500m"}}, "ports": [{"hostPort": 80}]}
    pod = {"spec": {"nodeName": "a", "containers": [container]}}
    assert occupant({**pod, "status": {"phase": "Failed"}}) is None
    assert occupant({"spec": {}}) is None
    taken = occupant(pod)
    assert taken is not None
    (found,) = nodes([_node("a")], [taken, Occupant("elsewhere", {})])
    assert (found.free("cpu"), found.free("nvidia.com/gpu"), found.free("pods"), found.free("memory")) == (3500, 1, 9, 0)
    assert [port.number for port in found.ports] == [80]


def test_where_pods_are_not_known_nothing_is_known_to_be_free() -> None:
    """None, not all of it."""
    (found,) = nodes([_node("a")], None)
    assert found.free("cpu") is None


def test_a_node_that_starts_is_not_settled() -> None:
    """Not ready, tainted with a state or by its NodePool at the start, or while its devices are cut anew; cordoned it is."""
    starting = [
        _node("a", status={"conditions": [{"type": "Ready", "status": "Unknown"}]}),
        _node("b", taints=[{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}]),
        _node("c", taints=[{"key": "example.com/agent", "effect": "NoSchedule"}]),
        _node("d", labels={"nvidia.com/mig.config.state": "pending"}),
    ]
    found = list(nodes(starting, None, ["example.com/agent"]))
    assert [node.settled for node in found] == [False] * 4
    assert [node.ready for node in found] == [False, True, True, True]
    cordoned = _node("e", unschedulable=True, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])
    (one,) = nodes([cordoned, {"metadata": {}}], None)
    assert one.settled
    assert one.cordoned


def test_a_slimmed_node_reads_the_same() -> None:
    """But for the machine in its ID; where no decision reads more, native amounts, its readiness and whether it is cordoned are gone."""
    status = {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}], "images": [1]}
    taints = [{"key": "a", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}, "odd"]
    value = _node("a", unschedulable=True, providerID="aws:///us-east-1a/i-0123", taints=taints, status=status)
    whole = read_node({"metadata": value["metadata"], **slimmed_node(value, whole=True)})
    assert (whole, whole.provider) == (replace(read_node(value), provider="aws://"), "aws://")
    assert slimmed_node(value, whole=False) == {
        "spec": {"taints": [{"key": "a", "value": "", "effect": "NoSchedule"}], "providerID": "aws://"},
        "status": {"allocatable": {"nvidia.com/gpu": "2"}},
    }


def test_nodes_that_are_alike_are_one_group() -> None:
    """Whatever their names, and what is taken of them."""
    objects = [_node("b"), _node("a"), _node("c", taints=[{"key": "t", "effect": "NoSchedule"}])]
    found = group_nodes(nodes(objects, [Occupant("a", {"cpu": 1})]))
    assert [[node.name for node in group.nodes] for group in found] == [["a", "b"], ["c"]]
    assert [taint.key for taint in found[1].taints] == ["t"]
    assert found[0].labels == {}
    assert found[0].allocatable["cpu"] == 4000


def test_labels_that_name_machines_make_no_groups() -> None:
    """Those of which each of many nodes has another value."""
    found = group_nodes(nodes([_node(f"n{i}", labels={"example.com/serial": str(i)}) for i in range(9)], None))
    assert len(found) == 1
    assert "example.com/serial" in found[0].own


def test_every_node_is_in_one_group() -> None:
    """And agrees with it."""
    random = Random(7)
    every = list(nodes([random_places.node(random, f"n{i}") for i in range(60)], None))
    found = group_nodes(every)
    assert sorted(node.name for group in found for node in group.nodes) == sorted(node.name for node in every)
    for group in found:
        for node in group.nodes:
            assert (node.taints, node.cordoned, node.allocatable) == (group.taints, group.cordoned, group.allocatable)
            assert group.labels.items() <= node.labels.items()
