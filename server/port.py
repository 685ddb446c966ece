"""What all connections of one port share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from server.http import Application, Call
from server.limits import Limits
from server.places import ConnectionPlaces


class BodyMemory:
    """The memory for incomplete bodies. A body that arrives in one piece, as most reviews do, never counts."""

    def __init__(self, most: int) -> None:
        self._free = most

    def has(self, size: int) -> bool:
        """Return whether ``size`` bytes are free."""
        return size <= self._free

    def take(self, size: int) -> bool:
        """Reserve ``size`` bytes; return whether there was room."""
        if size > self._free:
            return False
        self._free -= size
        return True

    def give_back(self, size: int) -> None:
        """Release ``size`` bytes that were reserved."""
        self._free += size


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One port: what its connections may read, and what they must not change."""

    limits: Limits
    applications: Mapping[bytes, Application]
    """Path -> the application that answers calls by POST to it."""
    pages: Application
    """Answers all other calls."""
    cut: Callable[[str], None]
    """Called with the reason for which a connection was ended, one of ``metrics.CUTS``."""
    always: AbstractSet[bytes] = frozenset()
    """Paths that are answered even if there is no place for their caller."""
    names: AbstractSet[str] = frozenset()
    """The caller's client certificate must have one of these; if empty, any caller is accepted."""
    all_headers: bool = False
    """True if pages read other headers than ``request_reader.READ``, such as cookies."""
    bodies: BodyMemory = field(init=False)
    places: ConnectionPlaces = field(init=False)
    stopping: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    """Set once every answer is the last one of its connection."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bodies", BodyMemory(self.limits.body_memory))
        object.__setattr__(self, "places", ConnectionPlaces(self.limits.connections))

    def application(self, call: Call) -> Application:
        """Return the application that answers the call."""
        return self.applications.get(call.path, self.pages) if call.method == b"POST" else self.pages
