"""Whether several pods have places at once."""

from __future__ import annotations

from typing import Any

import pytest

from kube.node import Occupant
from kube.scheduling import Wants, wants
from policies.placement.fleet import Fleet, fleet_of
from policies.placement.together import outlook_together
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling.node_pools import node_pool, of_families, tables

GPU = "nvidia.com/gpu"


def _fleet(*counts: int, occupants: Any = (), pools: Any = ()) -> Fleet:
    nodes = [
        {"kind": "Node", "metadata": {"name": f"n{i}"}, "status": {"allocatable": {GPU: count, "cpu": "8", "pods": 3}}}
        for i, count in enumerate(counts)
    ]
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
    assert outlook_together(pods, _fleet(*counts)) == expected


def test_what_others_hold_may_become_free() -> None:
    """Two nodes are enough, once the pod on one of them is gone."""
    assert outlook_together([(_pods(8), 2)], _fleet(8, 8, occupants=[Occupant("n1", {GPU: 1})])) == "later"
    assert outlook_together([(_pods(8), 2)], _fleet(8, 8, occupants=None)) == "now"


def test_karpenter_makes_a_machine_for_each() -> None:
    """However many there are."""
    assert outlook_together([(_pods(8), 50)], _fleet(pools=[node_pool("gpu", requirements=[of_families("p5")])])) == "now"
