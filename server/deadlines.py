"""The deadline of a connection, and the flow control of one with TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl


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


class TlsFlow(FlowControl):
    """Flow control of a TLS connection that stops reading from the socket too, not only from TLS.

    uvloop closes a TLS connection as soon as the caller has closed its side of the socket, without a word to the protocol,
    and drops what is written then. So the socket is not read while calls wait for their answers. ``transport``: uvloop's,
    whose ``set_read_buffer_limits`` pauses the socket where as many bytes as ``high`` wait, and else resumes it.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(transport)
        self._tls = transport
        self._loop = loop
        self._is_limited = False

    def pause_reading(self) -> None:
        if not self.read_paused:
            self._loop.call_soon(self._limit)  # a look that ``resume_reading`` asked for may come before
        super().pause_reading()
        self._limit()

    def _limit(self) -> None:
        if self.read_paused:
            self._is_limited = True
            self._tls.set_read_buffer_limits()  # resumes the socket
            self._tls.set_read_buffer_limits(high=0)  # pauses it

    def resume_reading(self) -> None:
        super().resume_reading()
        if self._is_limited and not self._tls.get_read_buffer_size():  # else after what waits: ``data_was_received``
            self.read_all()

    def data_was_received(self) -> None:
        """Prepare for the end of ``data_received``, after which uvloop looks at the limits once more."""
        if self.read_paused:
            self._limit()
            self._tls.set_read_buffer_limits(high=0)  # resumes the socket: the next look pauses it
        elif self._is_limited:
            self.read_all()

    def read_all(self) -> None:
        """Read the socket, whatever waits."""
        self._is_limited = False
        self._tls.set_read_buffer_limits()
