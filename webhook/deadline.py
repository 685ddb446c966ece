"""Until when something is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic


class Deadline:
    """One timer at most, and none that is set anew for each call: when it rings it looks at the time, and is set again where that has
    not come. ``missed`` is called with the reason."""

    __slots__ = ("_loop", "_missed", "_rings", "_timer", "at", "reason")

    def __init__(self, loop: asyncio.AbstractEventLoop, missed: Callable[[str], None]) -> None:
        self._loop = loop
        self._missed = missed
        self._timer: asyncio.TimerHandle | None = None
        self._rings = 0.0
        self.at = 0.0
        """seconds of ``time.monotonic``. May be put off directly: the timer that runs will find it"""
        self.reason = ""

    def set(self, reason: str, seconds: float) -> None:
        """In place of the one before."""
        self.reason, self.at = reason, monotonic() + seconds
        if self._timer is None or self._rings > self.at:
            self._stop()
            self._start(seconds)

    def end(self) -> None:
        """Nothing is waited for any more, and nothing is held."""
        self._stop()
        del self._missed

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self, seconds: float) -> None:
        self._rings = monotonic() + seconds
        self._timer = self._loop.call_later(seconds, self._ring)

    def _ring(self) -> None:
        left = self.at - monotonic()
        self._timer = None
        if left > 0:
            self._start(left)
        else:
            self._missed(self.reason)
