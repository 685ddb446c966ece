"""How many pods have places at once. Pods are placed one after the other, the largest first, as no scheduler promises to: that all of
them fit is certain, that they do not is certain only of pods that are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from kube.node import Node
from kube.requests import PODS
from kube.scheduling import Wants
from policies.placement.fleet import OUTLOOKS, Fleet, Outlook, Place, blockers, outlook

MOST_PODS = 100_000
"""Pods of one kind that are placed: more are as good as that."""


class Room(NamedTuple):
    """The places of several pods."""

    pods: int
    now: int | None
    """How many of them have a place now; None if that is not known, or without a bound."""
    empty: int | None
    """How many have one when nothing else runs; None if that is not known, or where nodes may be added."""
    outlook: Outlook
    """``now``: all have a place. ``later``: all have one when nothing else runs. Else ``unknown``."""


def room_for(pods: Iterable[tuple[Wants, int]], fleet: Fleet) -> Room:
    """Return the places of so many pods of each kind. A NodePool that makes a machine for a pod makes one for each, as far as its limits
    have what the pods request."""
    counts = [(wanted, min(count, MOST_PODS)) for wanted, count in pods]
    counts.sort(key=lambda kind: -max((need for name, need in kind[0].requests.items() if "/" in name), default=0))
    total = sum(count for _, count in counts)
    empty = [node if node.used is None else replace(node, used={}, ports=()) for node in fleet.nodes]
    now, is_bound_now = _placed(counts, fleet.nodes, fleet, "now")
    later, is_bound_later = _placed(counts, empty, fleet, "later")
    return Room(
        pods=total,
        now=now if is_bound_now and all(node.used is not None for node in fleet.nodes) else None,
        empty=later if is_bound_later else None,
        outlook="now" if now == total else "later" if later == total else "unknown",
    )


def _placed(counts: Sequence[tuple[Wants, int]], nodes: Sequence[Node], fleet: Fleet, worst: Outlook) -> tuple[int, bool]:
    """Return how many pods have a place that is no worse, and whether nodes bound their number."""

    def takes(wanted: Wants, place: Place) -> bool:
        return OUTLOOKS.index(outlook(blockers(wanted, place, fleet))) <= OUTLOOKS.index(worst)

    left, placed, is_bound = list(nodes), 0, False
    limits = [{name: pool.left(name) if worst == "now" else limit for name, limit in pool.limits.items()} for pool in fleet.pools]
    for wanted, count in counts:
        missing = count
        for number, node in enumerate(left):
            if missing and takes(wanted, node):
                taken = min(missing, _room_on(wanted, node, fleet))
                left[number] = _with(node, wanted, taken)
                missing -= taken
        pools = [limit for pool, limit in zip(fleet.pools, limits, strict=True) if takes(wanted, pool)]
        is_bound |= not fleet.open_ended and all(_limits_of(wanted, limit) for limit in pools)
        for limit in pools:
            missing -= _made_within(wanted, missing, limit)
        placed += count - missing
    return placed, is_bound


def _limits_of(wanted: Wants, limits: Mapping[str, Fraction | None]) -> dict[str, Fraction]:
    """Return what one pod takes of the limited resources, in their units."""
    needs = {name: Fraction(wanted.requests.get(name, 0), 1000 if name == "cpu" else 1) for name in limits}
    return {name: need for name, need in needs.items() if need > 0 and name not in wanted.unreadable}


def _made_within(wanted: Wants, count: int, limits: dict[str, Fraction | None]) -> int:
    """Return for how many of these pods a NodePool may make machines at most, and take them off its limits. A machine counts with all that
    it has, so that there may be fewer."""
    needs = _limits_of(wanted, limits)
    number = min((count, *(max(0, (limits[name] or 0) // need) for name, need in needs.items())))
    for name, need in needs.items():
        limits[name] = (limits[name] or 0) - number * need
    return number


def _room_on(wanted: Wants, node: Node, fleet: Fleet) -> int:
    """Return for how many such pods a node has room that takes one; all that it has where nobody knows what is taken of it."""
    if wanted.ports:
        return 1
    used = node.used or {}
    rooms = [node.allocatable.get(PODS, 0) - used.get(PODS, 0)]
    for name, need in wanted.requests.items():
        here = node.allocatable.get(name, 0)
        if need > 0 and name not in wanted.unreadable and (here or name not in fleet.delegated):
            rooms.append((here - used.get(name, 0)) // need)
    return max(min(rooms), 0)


def _with(node: Node, pod: Wants, count: int) -> Node:
    used = Counter(node.used or {})
    used.update({name: need * count for name, need in pod.requests.items()})
    used[PODS] += count
    return replace(node, used=used, ports=(*node.ports, *pod.ports))
