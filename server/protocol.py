"""One connection of a caller: bounded reads, its deadlines, and the ways in which it ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import httptools
import uvicorn

from server.answers import TOO_MANY, Answers, is_named
from server.deadlines import TlsFlow
from server.http import Call, come_back, text_answer
from server.limits import CROWDED, GOODBYE
from server.places import OPEN
from telemetry import log

if TYPE_CHECKING:
    from server.server import Server

PIECE = 16 * 2**10
"""Bytes that are parsed at a time: calls that follow in the same read wait as bytes, not as calls."""
PIECES = 4
"""Pieces that are parsed in one turn of the event loop, so that other connections are served meanwhile."""
WRITE_BUFFER = 64 * 2**10
"""Bytes of unread answers, besides the kernel's buffer, beyond which no further call is read."""
GOODBYE_ANSWER = come_back("the server is stopping: call another replica").encoded(close=True)
MAKES_ROOM = come_back("too many connections: this one is closed to make room").encoded(close=True)
LAST_WORDS = {"slow": text_answer(408, "the request took too long to arrive", close=True), "crowded": TOO_MANY}
"""Answers to a caller that missed a deadline, by its reason."""


class Protocol(Answers):
    """A connection, from its acceptance on. ``drop`` ends it before ``connection_made`` is called."""

    def __init__(self, port: Server, config: uvicorn.Config, source: str) -> None:
        super().__init__(port, config)
        self.source = source
        self.drop: Callable[[], object] = lambda: None
        self._unproven = True
        self._over = not port.places.enter(self)
        self._is_half_closed = False  # True if the caller sends nothing more: the calls that it sent are still answered
        self._rest: bytes | memoryview = b""
        """Bytes that are not parsed yet; while there are any, nothing else is read."""

    @property
    def is_idle(self) -> bool:
        """True if no call is on its way, as far as this side can see."""
        return self.is_open and not (self._begun or self._queue or self._running or self.is_ended or self._rest)

    # What the transport tells

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if self.is_ended:  # made room while its handshake came to its end
            transport.abort()
            return
        super().connection_made(transport)
        self.is_open = True
        if hasattr(transport, "set_read_buffer_limits"):
            self.flow = TlsFlow(transport, self.loop)
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        self._named = is_named(transport, self._port.names)
        self._port.places.reached(self, OPEN)
        if self._over:
            self._deadline.set("crowded", CROWDED)
        else:
            self._deadline.set("idle", self._port.limits.keep_alive)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.is_open:
            return
        self.is_open = False
        super().connection_lost(exc or ConnectionError())  # without one it would close the transport, which is closed
        self.gone()
        self.cycle = self.flow = self.transport = None  # type: ignore[assignment]

    def gone(self) -> None:
        """Release everything: the connection is closed, or was never opened."""
        if self._feed is None:
            return
        self.is_ended = True
        self._deadline.end()
        self._forsake()
        self._port.places.leave(self)
        self.drop = lambda: None
        self.parser = self._feed = None  # type: ignore[assignment]  # they hold this object

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return True to stay open until the calls that were sent are answered; TLS has no such state (``TlsFlow``)."""
        if self.is_ended:
            return False
        self._is_half_closed = bool(self._queue or self._running or self._rest) and not isinstance(self.flow, TlsFlow)
        if not self._is_half_closed:
            self.end()
        return self._is_half_closed

    def data_received(self, data: bytes) -> None:
        """Parse what arrives. After the end it is read and discarded: the caller may still be sending what
        was rejected, and closing the connection under it would lose the answer."""
        if self.is_ended:
            return
        if len(data) <= PIECE and not self._rest:
            self._received(data)
        else:
            self._rest = bytes(self._rest) + data if self._rest else data
            self._turn()
        if isinstance(self.flow, TlsFlow):
            self.flow.data_was_received()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._blocked = True
        if not self.is_ended:
            self._deadline.set("unread", self._port.limits.unread)
            self.flow.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._blocked = False
        if not self.is_ended:
            self._be_patient()
            self.loop.call_soon(self._next)

    def go_on(self) -> None:
        self._be_patient()
        self.loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Parse more of the pieces that wait, within bounds."""
        for _ in range(PIECES):
            if self._queue or not self._goes_on():
                return
            rest = memoryview(self._rest)
            piece, self._rest = bytes(rest[:PIECE]), rest[PIECE:]
            if not piece:
                (self.end if self._is_half_closed else self.flow.resume_reading)()
                return
            self._received(piece)
        self.flow.pause_reading()
        self.loop.call_soon(self._turn)

    def _received(self, piece: bytes) -> None:
        self._busy = False
        try:
            self._feed(piece)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._stumble(error)
        else:
            self._expect_more(len(piece))
        if self._queue and not self.is_ended:
            self.flow.pause_reading()
            if not self._running:
                self.loop.call_soon(self._next)

    def _expect_more(self, size: int) -> None:
        """Set the deadline for the rest of a call that has begun."""
        if self._begun and not self.is_ended and self._part(size) and self._goes_on() and not self._over:
            self._deadline.set("slow", self._port.limits.request_deadline)

    def used(self, *, good: bool) -> None:
        places = self._port.places
        if not self._unproven:
            places.use(self)
        elif good:
            self._unproven = False
            places.prove(self)

    # The end

    def say_goodbye(self, answer: bytes = GOODBYE_ANSWER) -> None:
        """End a connection on which no call is on its way, as far as this side can see. A call may have been
        sent at this very moment and would be lost, as the API server never retries it. Therefore an answer is
        sent: to such a call it says to try again, and Go's client drops it otherwise, with the connection."""
        self.transport.write(answer)
        self.end()

    def evict(self) -> None:
        """End the connection to make room; an idle one that was used gets an answer, as in
        ``say_goodbye``."""
        self._port.cut("crowded")
        if not self._unproven and self.is_idle:
            self._port.places.part(self)
            self.say_goodbye(MAKES_ROOM)
        else:
            self.end_now()

    def end_now(self) -> None:
        """End the connection at once."""
        self.is_ended = True
        if self.is_open:
            self.transport.abort()
        else:
            self.drop()

    def end(self) -> None:
        """End the connection after what was written. What the caller still sends is read for a while, as an
        abort would lose the answer."""
        self.is_ended = True
        self._forsake()
        self._rest = b""
        self._deadline.set("goodbye", self._port.limits.unread if self._blocked else GOODBYE)
        with contextlib.suppress(OSError, RuntimeError):  # gone already
            self.flow.resume_reading()
            if isinstance(self.flow, TlsFlow):
                self.flow.read_all()
            if self.transport.can_write_eof():
                self.transport.write_eof()
            else:  # TLS has its own way of ending one side
                self.transport.close()

    def _forsake(self) -> None:
        """Drop all calls that have no answer."""
        self._forsake_begun()
        for call in self._queue:
            if isinstance(call, Call):
                self._lose(call)
        self._queue.clear()

    def _stumble(self, error: Exception) -> None:
        """Handle an error of the parser, after which nothing more is parsed."""
        if self.is_ended:
            return  # as it should: something follows the last call
        if not isinstance(error, httptools.HttpParserCallbackError):
            self.deny("garbled", text_answer(400, f"this is not HTTP/1.1: {error}", close=True))
            return
        cause = error.__context__
        log.write("failed", "error", phase="connection", error=log.trace(cause if isinstance(cause, Exception) else error))
        self._port.cut("garbled")
        self.end_now()

    def _be_patient(self) -> None:
        limits = self._port.limits
        if self._begun:
            self._deadline.set("slow", limits.request_deadline)
        else:
            self._deadline.set("idle", limits.keep_alive)

    def miss(self, reason: str) -> None:
        """End the connection, whose deadline for ``reason`` has passed."""
        if reason in LAST_WORDS and not (self._queue or self._running):
            self.deny(reason, LAST_WORDS[reason])
        elif reason == "idle":
            self._port.cut("idle")
            self.end()
        else:
            if reason != "goodbye":
                self._port.cut(reason)
            self.end_now()
