"""Whom a reflector serves: who keeps its objects, and who is told of what happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from cluster.kinds import Raw


class Sink(Protocol):
    """Whoever keeps the objects. Called on the event loop; what it raises is told, and the kind is listed again."""

    def replace(self, kind: str, objects: list[Raw]) -> None:
        """These are all there are."""

    def put(self, kind: str, obj: Raw) -> None:
        """A new object, or a new state of one; the same may come twice."""

    def remove(self, kind: str, obj: Raw) -> None:
        """In its last state; it may be unknown."""


class Tell(Protocol):
    """For logs: kind_listed (kind, objects), kind_failed (kind, error, synced), kind_healed (kind)."""

    def __call__(self, event: str, /, **fields: Any) -> None: ...


@dataclass(slots=True)
class Counts:
    """Since the start."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    errors: int = 0
