"""Pods that are alike, placed together: how many of them have a place at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kube.node import Node
from kube.requests import PODS
from kube.scheduling import Wants
from kube.tree import Path, value_at
from policies.placement.fleet import Fleet, blockers

COUNTS = ("replicas", "parallelism", "numNodes", "numOfHosts", "size")
"""Fields that say how many pods, or groups of pods, a workload has of what stands beside them: of apps, batch, JobSet, LeaderWorkerSet
(``size``, the leader included), Kubeflow's trainers, Ray (``numOfHosts``), Volcano and others."""
MOST_PODS = 100_000
"""Pods of one workload that are counted."""


def room_for(wanted: Wants, fleet: Fleet) -> int | None:
    """Return how many such pods have a place now, if nothing else takes it; None where Karpenter makes nodes for them, where places are not
    known, or where what pods hold is not."""
    if fleet.open_ended or any(not blockers(wanted, pool, fleet) for pool in fleet.pools):
        return None
    total = 0
    for node in fleet.nodes:
        if not blockers(wanted, node, fleet):
            room = _room_on(wanted, node, fleet)
            if room is None:
                return None
            total += room
    return total


def most_ever(wanted: Wants, fleet: Fleet) -> int | None:
    """Return how many such pods have a place at most when nothing else runs; None where nodes may be added."""
    if fleet.open_ended or any(all(blocker.passing for blocker in blockers(wanted, pool, fleet)) for pool in fleet.pools):
        return None
    empty = [replace(node, used={}) for node in fleet.nodes if all(blocker.passing for blocker in blockers(wanted, node, fleet))]
    rooms = [_room_on(wanted, node, fleet) for node in empty]
    return sum(room for room in rooms if room is not None)


def _room_on(wanted: Wants, node: Node, fleet: Fleet) -> int | None:
    if node.used is None:
        return None
    if wanted.ports:
        return 1
    rooms = [node.allocatable.get(PODS, 0) - node.used.get(PODS, 0)]
    for name, need in wanted.requests.items():
        if need > 0 and (node.allocatable.get(name, 0) or name not in fleet.delegated):
            rooms.append((node.allocatable.get(name, 0) - node.used.get(name, 0)) // need)
    return max(min(rooms), 0)


def pods_of(value: Mapping[str, Any], template: Path) -> int:
    """Return how many pods an object has at once of the template at this path: all numbers on the way to it, multiplied."""
    number = 1
    for length in range(len(template)):
        holder = value_at(value, template[:length])
        if isinstance(holder, Mapping):
            number = min(number * _count(holder, template[length]), MOST_PODS)
    return number


def _count(holder: Mapping[str, Any], part: object) -> int:
    """Return how many of a part of a map there are: of a Job no more pods at once than it has to complete, of a group whose leader has a
    template of its own one pod less than its size."""
    count = 1
    if "leaderTemplate" in holder and isinstance(size := holder.get("size"), int):
        return 1 if part == "leaderTemplate" else max(size - 1, 0)
    for name in COUNTS:
        written = holder.get(name)
        if isinstance(written, int) and not isinstance(written, bool):
            completions = holder.get("completions")
            most = completions if name == "parallelism" and isinstance(completions, int) else written
            count *= max(min(written, most), 0)
    return count
