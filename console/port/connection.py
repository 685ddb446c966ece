"""One connection: uvicorn's own protocol, which has no deadline for a request that comes slowly or never, none for an answer that
nobody reads, no bound on a head, and counts connections only to deny everybody. All of these are here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MOST_CONNECTIONS = 256
"""Open at once: 20 people with six connections each, twice. One more takes the place of the one that is idle for longest."""
ARRIVES = 15.0
"""Seconds that a request may take to arrive, body included, from the first byte on; the first one from the connection on. The largest
form has 256 KiB: a phone on a poor line sends that in ten."""
HEAD = 32 * 2**10
"""Bytes of a request line and its headers: an address of 8 KiB, and a bearer token of 16. It is looked at after each piece of at
most 256 KiB that the event loop reads."""
UNREAD = 30.0
"""Seconds that a caller may leave an answer unread."""
IDLE = 60
"""Seconds that an idle connection is kept: pages ask for news every 15."""
GOODBYE = 5.0
"""Seconds that the last bytes of a connection may take."""
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 22\r\nconnection: close\r\n\r\nheaders are too large\n"
)


class Connection(HttpToolsProtocol):
    """A connection with its deadlines."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._arrives: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._head = 0
        """Bytes of a head that is not complete."""
        self._in_head = False
        self.used = monotonic()

    @property
    def is_idle(self) -> bool:
        """True if no answer is under way."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arrives = self._later(ARRIVES, self._end)
        if len(self.connections) > MOST_CONNECTIONS:
            idle = [cast(Connection, one) for one in self.connections if cast(Connection, one).is_idle]
            min(idle, key=lambda one: one.used).transport.abort()  # this one is idle too

    def connection_lost(self, exc: Exception | None) -> None:
        for one in (self._arrives, self._unread):
            if one is not None:
                one.cancel()
        self._arrives = self._unread = None
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.used = monotonic()
        if self._arrives is None and self.is_idle:
            self._arrives = self._later(ARRIVES, self._end)
        super().data_received(data)
        self._head = self._head + len(data) if self._in_head else 0
        if self._head > HEAD and not self.transport.is_closing():
            self.transport.write(TOO_LARGE)
            self._end()

    def on_message_begin(self) -> None:
        if not self.is_idle:  # no browser and no proxy pipelines, and a piece holds thousands of requests
            self.transport.abort()
            raise ValueError("a request before the answer to the last one")
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        if self._arrives is not None:
            self._arrives.cancel()
            self._arrives = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._later(UNREAD, self.transport.abort)

    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        self._end()

    def _end(self) -> None:
        """End it after what was written; at once where that does not go away."""
        if self._unread is None:
            self._unread = self._later(GOODBYE, self.transport.abort)
        if not self.transport.is_closing():
            self.transport.close()

    def _later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, call)
