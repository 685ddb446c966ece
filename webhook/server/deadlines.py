"""The deadline of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic


class Deadline:
    """A deadline with at most one timer, which is not restarted for each call.

    When the timer fires before ``at``, it is set again for the rest of the time. ``missed`` is called with
    the reason.
    """

    __slots__ = ("_loop", "_missed", "_rings", "_timer", "at", "reason")

    def __init__(self, loop: asyncio.AbstractEventLoop, missed: Callable[[str], None]) -> None:
        self._loop = loop
        self._missed = missed
        self._timer: asyncio.TimerHandle | None = None
        self._rings = 0.0
        self.at = 0.0
        """Seconds of ``time.monotonic``. May be postponed directly: the running timer will find it."""
        self.reason = ""

    def set(self, reason: str, seconds: float) -> None:
        """Set the deadline, in place of the one before."""
        self.reason, self.at = reason, monotonic() + seconds
        if self._timer is None or self._rings > self.at:
            self._stop()
            self._start(seconds)

    def end(self) -> None:
        """Cancel the deadline and drop the callback."""
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
