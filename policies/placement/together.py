"""Whether several pods have places at once. Pods are placed one after the other, the largest first, as no scheduler promises to: that
all of them fit is certain, that they do not is certain only of pods that are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kube.node import Node
from kube.requests import PODS
from kube.scheduling import Wants
from policies.placement.fleet import Fleet, Outlook, blockers

MOST_PODS = 1000
"""Pods of a template that are placed: more are as good as that."""


def outlook_together(pods: Iterable[tuple[Wants, int]], fleet: Fleet) -> Outlook:
    """Return what becomes of so many pods of each kind, of which each has a place for itself: ``now``, ``later`` if only empty nodes have
    room for all, else ``unknown``. A NodePool that makes a machine for a pod makes one for each."""
    every = sorted(pods, key=lambda pod: -max((need for name, need in pod[0].requests.items() if "/" in name), default=0))
    if _fit(every, fleet.nodes, fleet):
        return "now"
    empty = [node if node.used is None else replace(node, used={}, ports=()) for node in fleet.nodes]
    return "later" if _fit(every, empty, fleet) else "unknown"


def _fit(pods: Sequence[tuple[Wants, int]], nodes: Sequence[Node], fleet: Fleet) -> bool:
    left = list(nodes)
    for wanted, count in pods:
        if any(not blockers(wanted, pool, fleet) for pool in fleet.pools):
            continue
        missing = min(count, MOST_PODS)
        for number, node in enumerate(left):
            while missing and not blockers(wanted, node, fleet):
                node = _with(node, wanted)
                missing -= 1
            left[number] = node
        if missing:
            return False
    return True


def _with(node: Node, pod: Wants) -> Node:
    used = Counter(node.used or {})
    used.update(pod.requests)
    used[PODS] += 1
    return replace(node, used=used, ports=(*node.ports, *pod.ports))
