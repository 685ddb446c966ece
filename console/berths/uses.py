"""What is held and what is free of one device name on one node."""

from __future__ import annotations

from typing import Literal, NamedTuple

from analysis.scan.seen import GpuNode
from kube.node import Node

State = Literal["ready", "cordoned", "not ready"]
MOST = 100_000
"""Devices of one node that are counted: the largest machines have some thousand replicas."""


class Use(NamedTuple):
    """Devices of one name on one node; ``held``, ``free`` and ``out`` together are ``total``."""

    node: str
    state: State
    total: int
    """Those that are there, healthy or not."""
    held: int
    free: int
    """What a pod could take now."""
    out: int
    """Of no use: not healthy, or free on a node that takes no pods."""

    @property
    def whole(self) -> bool:
        """True if a job that takes the whole node could have it."""
        return 0 < self.total == self.free


def state(node: Node) -> State:
    """Return whether a node takes pods: one that starts, or whose devices are set up anew, is not ready."""
    return "cordoned" if node.cordoned else "ready" if node.settled else "not ready"


def use(name: str, node: GpuNode) -> Use:
    """Return what is held of a device name."""
    healthy = _bounded(node.allocatable.get(name, 0))
    total = _bounded(node.place.offered(name))
    now = state(node.place)
    held = min(total, _bounded((node.place.used or {}).get(name, 0)))
    free = max(0, healthy - held) if now == "ready" else 0
    return Use(node=node.name, state=now, total=total, held=held, free=free, out=total - held - free)


def _bounded(number: int) -> int:
    return max(0, min(number, MOST))
