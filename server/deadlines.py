"""The deadline of a connection, and how its reading is paused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any


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


class Intake:
    """Pauses and resumes the reading of a connection.

    uvloop closes a TLS connection as soon as the caller has closed its side of the socket, without a word to the protocol,
    and drops what is written then. So the socket is not read while calls wait for their answers. ``set_read_buffer_limits`` of
    uvloop's TLS transport pauses the socket where as many bytes as ``high`` wait, and else resumes it.
    """

    __slots__ = ("_is_limited", "_is_paused", "_loop", "_transport", "is_tls")

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self.is_tls = hasattr(transport, "set_read_buffer_limits")
        self._is_paused = self._is_limited = False

    def pause(self) -> None:
        """Read nothing more, until ``resume``."""
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
            if self.is_tls:
                self._loop.call_soon(self._limit)  # a look that ``resume`` asked for may come before
        if self.is_tls:
            self._limit()

    def resume(self) -> None:
        """Read again."""
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        if self._is_limited and not self._transport.get_read_buffer_size():  # else after what waits: ``data_was_received``
            self.read_all()

    def data_was_received(self) -> None:
        """Prepare for the end of ``data_received``, after which uvloop looks at the limits once more."""
        if not self.is_tls:
            return
        if self._is_paused:
            self._limit()
            self._transport.set_read_buffer_limits(high=0)  # resumes the socket: the next look pauses it
        elif self._is_limited:
            self.read_all()

    def read_all(self) -> None:
        """Read the socket, whatever waits."""
        if self.is_tls:
            self._is_limited = False
            self._transport.set_read_buffer_limits()

    def _limit(self) -> None:
        if self._is_paused:
            self._is_limited = True
            self._transport.set_read_buffer_limits()  # resumes the socket
            self._transport.set_read_buffer_limits(high=0)  # pauses it
