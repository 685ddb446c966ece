"""Whether this process is so far behind that a call is better sent elsewhere."""

from __future__ import annotations

import asyncio
import math
from time import monotonic

from webhook import logs

TICK = 0.1
"""Seconds between two looks. At most that much is added to how far behind the process says it is."""
QUIET = 5.0
"""Seconds without a call turned away after which it is over."""


class Overload:
    """How late the event loop is, by a timer that should ring every tenth of a second. While a long turn goes on, the timer is overdue:
    a call that is handled in it has waited for as long. Once it has rung late, the calls of the next turn have waited so long too;
    those that come later have not."""

    def __init__(self, bound: float) -> None:
        """``bound``: seconds of lateness from which on calls are turned away."""
        self._bound = bound
        self._due = math.inf
        self._late = 0.0
        """how late it rang, seconds"""
        self._turned_away = 0
        self._last = 0.0
        self._longest = 0.0

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on, for ever."""
        self._loop = loop
        self._tick()

    def sheds(self, now: float) -> bool:
        """Whether a call that is in at ``now`` (seconds of ``time.monotonic``) is to be turned away. Told once for each episode."""
        late = now - self._due + self._late
        if late < self._bound:
            return False
        if not self._turned_away:
            logs.write("overloaded", "warning", behindSeconds=round(late, 1), text="calls are sent elsewhere: 503 with Retry-After")
        self._turned_away += 1
        self._last, self._longest = now, max(late, self._longest)
        return True

    def _tick(self) -> None:
        now = monotonic()
        self._late = max(0.0, now - self._due)
        self._due = now + TICK
        self._loop.call_soon(self._loop.call_soon, self._forget)  # after the next turn
        if self._turned_away and now - self._last > QUIET:
            logs.write("overload_over", "info", calls=self._turned_away, longestSeconds=round(self._longest, 1))
            self._turned_away, self._longest = 0, 0.0
        self._loop.call_later(TICK, self._tick)

    def _forget(self) -> None:
        self._late = 0.0
