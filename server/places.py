"""The connections of one port: how many there are, and which of them makes room for another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from server.limits import TURNED_AWAY

SILENT, SHAKING, OPEN = range(3)
"""The stages of a connection that has had no answer of 200 yet: no byte has arrived, the handshake has begun,
the handshake is done."""
NEWCOMERS = 8
"""A stage with more than one in so many of all places is the first to make room."""
SHARE = 2
"""One in so many of all places.

Up to this part, connections that never had an answer push out idle ones that had; and this many one address
may hold with calls in progress, where another address needs a place.
"""


class Holder(Protocol):
    """A connection."""

    source: str
    """The address that it comes from."""

    @property
    def is_idle(self) -> bool:
        """True if no call is in progress."""

    @property
    def is_open(self) -> bool:
        """True if its handshake is done."""

    def evict(self) -> None:
        """End it to make room; it has no place any more."""

    def say_goodbye(self) -> None:
        """End an idle connection."""

    def end_now(self) -> None:
        """Abort the connection."""


class ConnectionPlaces:
    """The places of one port. A connection has one from the moment it is accepted, until ``leave``."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.unproven: tuple[dict[Holder, None], ...] = ({}, {}, {})
        """Connections that never had an answer of 200, by stage, the oldest first."""
        self._proven: dict[str, dict[Holder, None]] = {}
        """Connections that had an answer of 200, by address, the least recently used first."""
        self._count = 0
        self._turned_away: dict[Holder, None] = {}
        """Connections without a place that are only told to come back."""
        self._parting: dict[Holder, None] = {}
        """Connections that were told that they make room; they have no place any more either."""

    def __iter__(self) -> Iterator[Holder]:
        """Yield all connections, also those without a place."""
        for group in (*self.unproven, *self._proven.values(), self._turned_away, self._parting):
            yield from group

    def enter(self, holder: Holder) -> bool:
        """Admit an accepted connection. Returns False if there is no place: it is only told to come back."""
        if self._count >= self._number and not self._make_room(holder.source):
            self._turned_away[holder] = None
            if len(self._turned_away) > TURNED_AWAY:
                self._evict(next(iter(self._turned_away)))
            return False
        self._count += 1
        self.unproven[SILENT][holder] = None
        return True

    def reached(self, holder: Holder, stage: int) -> None:
        """Note that it has reached the stage SHAKING or OPEN."""
        for before in self.unproven[:stage]:
            if holder in before:
                del before[holder]
                self.unproven[stage][holder] = None

    def prove(self, holder: Holder) -> None:
        """Note its first answer of 200."""
        if self._is_unproven(holder):
            self._proven.setdefault(holder.source, {})[holder] = None

    def use(self, holder: Holder) -> None:
        """Note a further answer of a proven connection: it becomes the last of its address to make room."""
        its = self._proven.get(holder.source)
        if its is not None and holder in its:
            del its[holder]
            its[holder] = None

    def part(self, holder: Holder) -> None:
        """Keep it for a moment, for the answer that it makes room. If there are too many, the oldest is
        aborted."""
        self._parting[holder] = None
        if len(self._parting) > TURNED_AWAY:
            oldest = next(iter(self._parting))
            self.leave(oldest)
            oldest.end_now()

    def leave(self, holder: Holder) -> None:
        """Give up its place: it has ended, or is about to."""
        if holder in self._turned_away or holder in self._parting:
            self._turned_away.pop(holder, None)
            self._parting.pop(holder, None)
        elif self._is_unproven(holder):
            self._count -= 1
        elif holder in (its := self._proven.get(holder.source, {})):
            del its[holder]
            self._count -= 1
            if not its:
                del self._proven[holder.source]

    def is_dialling(self, holder: Holder) -> bool:
        """Return whether it never had an answer of 200."""
        return any(holder in group for group in self.unproven)

    def _is_unproven(self, holder: Holder) -> bool:
        """Remove it from the unproven connections; return whether it was one."""
        for group in self.unproven:
            if holder in group:
                del group[holder]
                return True
        return False

    def _make_room(self, source: str) -> bool:
        flooded = sum(map(len, self.unproven)) > self._number // SHARE
        victim = (None if flooded else self._idle()) or self._flooding() or self._idle() or self._over_share(source)
        if victim is not None:
            self._evict(victim)
        return victim is not None

    def _evict(self, holder: Holder) -> None:
        self.leave(holder)
        holder.evict()

    def _idle(self) -> Holder | None:
        """Return the least recently used idle connection of the address that has most.

        So an address that holds on to many connections pushes out nobody who has fewer.
        """
        for its in sorted(self._proven.values(), key=len, reverse=True):
            if (idle := next((holder for holder in its if holder.is_idle), None)) is not None:
                return idle
        return None

    def _flooding(self) -> Holder | None:
        """Return the oldest connection of the first stage that has many, else of the stage that has most.

        So connections that cost their sender nothing push out none that has done more.
        """
        many = next((group for group in self.unproven if len(group) > self._number // NEWCOMERS), max(self.unproven, key=len))
        return next(iter(many), None)

    def _over_share(self, source: str) -> Holder | None:
        """Return a connection of another address over its share, where every place has a call in progress."""
        for address, its in self._proven.items():
            if address != source and len(its) > self._number // SHARE:
                return next(iter(its))
        return None
