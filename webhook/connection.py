"""One connection of a caller: uvicorn's HTTP/1.1 protocol, with the limits that it lacks.

uvicorn 0.54 cuts nobody who is slow: a connection without a request, a header sent a byte at a time and a body that never
ends stay for ever. Here the time from a request's first byte to its last is bounded, so is its head, and
so is the number of connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from webhook.limits import HEAD_BYTES, Limits

TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 21\r\n\r\ntoo many connections\n"
)


class Connection(HttpToolsProtocol):
    """``on_cut`` is told why a connection was ended: ``idle``, ``slow``, ``head``, ``crowded`` or ``garbled``."""

    def __init__(self, *, limits: Limits, on_cut: Callable[[str], None], **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._on_cut = on_cut
        self._timer: asyncio.TimerHandle | None = None
        self._timed_for = ""
        self._arriving = False
        self._head = 0
        """bytes of a head that is not complete"""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A caller over the limit is told to come back, on another connection."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            transport.write(TOO_MANY)
            self._cut("crowded")
        else:
            self._time("idle", self._limits.keep_alive)  # a client may dial ahead and use the connection later

    def connection_lost(self, exc: Exception | None) -> None:
        """Its timer ends with it."""
        self._time("", 0)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Times what is still arriving; a request that came whole, as the API server's do, costs one comparison."""
        super().data_received(data)
        if self._arriving:
            self._time("slow", self._limits.request_deadline)
            self._bound_head(len(data))
        elif self.timeout_keep_alive_task is None and not self._in_a_call:
            self._time("idle", self._limits.keep_alive)  # bytes that begin no request, such as empty lines
        elif self._timer is not None:
            self._time("", 0)

    def send_400_response(self, msg: str) -> None:
        """uvicorn's answer to what is not HTTP, counted as ours are."""
        self._on_cut("garbled")
        super().send_400_response(msg)

    def timeout_keep_alive_handler(self) -> None:
        """uvicorn's own end of a connection that was idle after an answer, counted as ours are."""
        if not self.transport.is_closing():
            self._on_cut("idle")
        super().timeout_keep_alive_handler()

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._arriving = True
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is in; from here the body's limit holds."""
        self._head = -1
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The last byte of a request."""
        self._arriving = False
        super().on_message_complete()

    @property
    def _in_a_call(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # uvicorn does not say that it is None before the first
        return cycle is not None and not cycle.response_complete

    def _bound_head(self, size: int) -> None:
        """``size`` may hold the end of a request before, which only a caller that pipelines sends: the API server does not."""
        if self._head < 0:
            return
        self._head += size
        if self._head > HEAD_BYTES:
            self._cut("head")

    def _time(self, reason: str, seconds: int) -> None:
        """One timer at most: one that runs for the same reason goes on, ``""`` ends it."""
        if reason == self._timed_for:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timed_for = reason
        self._timer = self.loop.call_later(seconds, self._cut, reason) if reason else None

    def _cut(self, reason: str) -> None:
        if self.transport.is_closing():
            return
        self._on_cut(reason)
        if reason == "crowded":
            self.transport.close()
        else:
            self.transport.abort()
