"""Calls that wait inside Berth for what its watch has not brought yet, or for their namespace's turn: each once, and for at most a second.

The uid of a review is new in each call, so nothing can count how often the API server asks again: a 503 for what a tenant can bring about
would pass the object wherever an entry says Ignore.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from policies.state.snapshot import Snapshot

WAIT = 1.0
"""Seconds. The watch brings a claim within some 20 ms; the API server waits 5 s for both phases each."""
MOST = 256
"""The most calls that wait; further ones are answered at once."""
MOST_OF_ONE = 16
"""The most of one namespace."""
MOST_BYTES = 16 * 2**20
"""The most bytes of all their bodies, which are usually some 5 KiB each."""


class Handle(Protocol):
    """A timer that was started."""

    def cancel(self) -> object: ...


Timer = Callable[[float, Callable[[], None]], Handle]


def on_loop(seconds: float, run: Callable[[], None]) -> Handle:
    """Run something later, on the event loop of the caller."""
    return asyncio.get_running_loop().call_later(seconds, run)


class NotYet(Exception):
    """Something on which the decision rests is about to arrive. ``arrived``: whether a snapshot has it."""

    def __init__(self, namespace: str, arrived: Callable[[Snapshot], bool]) -> None:
        super().__init__(namespace)
        self.namespace = namespace
        self.arrived = arrived


@dataclass(slots=True, eq=False)
class _Parked:
    wait: NotYet
    size: int
    resume: Callable[[], None]
    timer: Handle


class Parking:
    """The calls that wait. Changed only on the event loop."""

    def __init__(self, timer: Timer = on_loop) -> None:
        self._timer = timer
        self._parked: dict[_Parked, None] = {}
        self._of: Counter[str] = Counter()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, wait: NotYet, size: int, resume: Callable[[], None]) -> bool:
        """Return whether there is room for a call of ``size`` bytes; if so, ``resume`` is called once what it waits for has arrived, or
        after ``WAIT``."""
        if len(self._parked) >= MOST or self._of.get(wait.namespace, 0) >= MOST_OF_ONE or self._bytes + size > MOST_BYTES:
            return False
        parked = _Parked(wait, size, resume, self._timer(WAIT, lambda: self._leave(parked)))
        self._parked[parked] = None
        self._of[wait.namespace] += 1
        self._bytes += size
        return True

    def resume_arrived(self, snapshot: Snapshot) -> None:
        """Resume the calls for which this snapshot has all, each in a turn of its own."""
        for parked in [parked for parked in self._parked if parked.wait.arrived(snapshot)]:
            parked.timer.cancel()
            parked.wait.arrived = lambda _: False
            parked.timer = self._timer(0, lambda parked=parked: self._leave(parked))  # type: ignore[misc]

    def _leave(self, parked: _Parked) -> None:
        del self._parked[parked]
        self._bytes -= parked.size
        self._of[parked.wait.namespace] -= 1
        if not self._of[parked.wait.namespace]:
            del self._of[parked.wait.namespace]
        parked.resume()
