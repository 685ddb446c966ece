"""The interfaces that a reflector reports to: the store of its objects, and the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from kube.tree import Raw


class Store(Protocol):
    """A store of objects. It is called on the event loop; its exceptions are logged, and the kind is listed
    again."""

    async def replace(self, kind: str, objects: list[Raw]) -> None:
        """Replace all objects of the kind; a long list in several turns of the event loop. No other call for the kind comes meanwhile."""

    def put(self, kind: str, obj: Raw) -> None:
        """Add or update an object; the same state may come twice."""

    def remove(self, kind: str, obj: Raw) -> None:
        """Remove an object, given in its last state; it may be unknown."""


class Tell(Protocol):
    """A logger of the events kind_listed (kind, objects), kind_failed (kind, error, synced) and kind_healed
    (kind)."""

    def __call__(self, event: str, /, **fields: Any) -> None: ...


@dataclass(slots=True)
class StoreCounts:
    """Totals since the start."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    errors: int = 0
