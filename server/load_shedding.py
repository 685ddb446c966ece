"""Load shedding: calls are turned away while the event loop is too far behind."""

from __future__ import annotations

import asyncio
import math
from time import monotonic

from telemetry import log

TICK = 0.1
"""Seconds between two measurements. At most that much is added to the measured lateness."""
QUIET = 5.0
"""Seconds without a call turned away after which the overload is over."""


class LoadShedding:
    """Measures the lateness of the event loop, by a timer that should fire every tenth of a second.

    During a long turn the timer is overdue: a call that is handled in it has waited for as long. Once it has
    fired late, the calls of the next turn have waited as long too; later ones have not.
    """

    def __init__(self, bound: float) -> None:
        """``bound``: seconds of lateness from which on calls are turned away."""
        self._bound = bound
        self._due = math.inf
        self._late = 0.0
        """The lateness of the timer when it last fired, in seconds."""
        self._turned_away = 0
        self._last = 0.0
        self._longest = 0.0

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start measuring, for ever."""
        self._loop = loop
        self._tick()

    def sheds(self, now: float) -> bool:
        """Return whether a call that is complete at ``now`` (seconds of ``time.monotonic``) is to be turned
        away.

        Logs once per episode.
        """
        late = now - self._due + self._late
        if late < self._bound:
            return False
        if not self._turned_away:
            log.write(
                "overloaded",
                "warning",
                behindSeconds=round(late, 1),
                text="calls get 503, so the API server calls another replica; add replicas or CPU",
            )
        self._turned_away += 1
        self._last, self._longest = now, max(late, self._longest)
        return True

    def _tick(self) -> None:
        now = monotonic()
        self._late = max(0.0, now - self._due)
        self._due = now + TICK
        self._loop.call_soon(self._loop.call_soon, self._forget)  # after the next turn
        if self._turned_away and now - self._last > QUIET:
            log.write("overload_over", "info", calls=self._turned_away, longestSeconds=round(self._longest, 1))
            self._turned_away, self._longest = 0, 0.0
        self._loop.call_later(TICK, self._tick)

    def _forget(self) -> None:
        self._late = 0.0
