"""One connection of a caller: bounded reads, its deadlines, and the ways in which it ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.answer_queue import TOO_MANY, AnswerQueue
from server.deadlines import Deadline, Intake
from server.http import Peer, come_back, text_answer
from server.limits import CROWDED, GOODBYE
from server.places import OPEN
from server.port import Port
from server.request_reader import RequestReader
from telemetry import log

PIECE = 16 * 2**10
"""Bytes that are parsed at a time: calls that follow in the same read wait as bytes, not as calls."""
PIECES = 4
"""Pieces that are parsed in one turn of the event loop, so that other connections are served meanwhile."""
WRITE_BUFFER = 64 * 2**10
"""Bytes of unread answers, besides the kernel's buffer, beyond which no further call is read."""
GOODBYE_ANSWER = come_back("the server is stopping: call another replica").encoded(close=True)
MAKES_ROOM = come_back("too many connections: this one is closed to make room").encoded(close=True)
LAST_ANSWERS = {"slow": text_answer(408, "the request took too long to arrive", close=True), "crowded": TOO_MANY}
"""Answers to a caller that missed a deadline, by its reason."""


class Connection(HttpToolsProtocol):
    """A connection, from its acceptance on: a transport, a ``RequestReader`` of its bytes, and an ``AnswerQueue`` of its calls.

    ``drop`` ends it before ``connection_made`` is called.
    """

    def __init__(self, port: Port, server: uvicorn.Server, source: str) -> None:
        """``source``: the address that it comes from."""
        loop = asyncio.get_running_loop()
        super().__init__(server.config, server.server_state, {}, loop)
        self.parser = None  # type: ignore[assignment]  # the reader has its own
        self._port = port
        self.source = source
        self.drop: Callable[[], object] = lambda: None
        self._deadline = Deadline(loop, self._miss)
        self._deadline.set("handshake", port.limits.handshake)
        self._queue = AnswerQueue(port, self, self._deadline, loop)
        self._reader = RequestReader(port, self._queue)
        self._intake: Intake | None = None
        self._is_released = False
        self.is_open = False
        """True once the handshake is done."""
        self._is_unproven = True
        self._is_half_closed = False
        """True if the caller sends nothing more: the calls that it sent are still answered."""
        self._rest: bytes | memoryview = b""
        """Bytes that are not parsed yet; while there are any, nothing else is read."""
        self._queue.is_over = not port.places.enter(self)

    @property
    def is_idle(self) -> bool:
        """True if no call is on its way, as far as this side can see."""
        return self.is_open and not (self._reader.is_begun or self._queue.has_calls or self.is_ended or self._rest)

    @property
    def is_ended(self) -> bool:
        """True if no further call is answered."""
        return self._queue.is_ended

    # What the transport tells

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if self.is_ended:  # made room while its handshake came to its end
            transport.abort()
            return
        super().connection_made(transport)
        self.is_open = True
        self._intake = Intake(transport, self.loop)
        self._reader.peer = Peer(self.client, self.server, self.scheme or "http")
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        self._queue.is_named = is_named(transport, self._port.names)
        self._port.places.reached(self, OPEN)
        if self._queue.is_over:
            self._deadline.set("crowded", CROWDED)
        else:
            self._deadline.set("idle", self._port.limits.keep_alive)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.is_open:
            return
        self.is_open = False
        super().connection_lost(exc or ConnectionError())  # without one it would close the transport, which is closed
        self.release()
        self._intake = self.flow = self.transport = None  # type: ignore[assignment]

    def release(self) -> None:
        """Release everything: the connection is closed, or was never opened."""
        if self._is_released:
            return
        self._is_released = True
        self._deadline.end()
        self._reader.close()
        self._queue.close()
        self._port.places.leave(self)
        self.drop = lambda: None

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return True to stay open until the calls that were sent are answered; TLS has no such state (``Intake``)."""
        if self.is_ended:
            return False
        self._is_half_closed = not self._reading.is_tls and (self._queue.has_calls or bool(self._rest))
        if not self._is_half_closed:
            self.end()
        return self._is_half_closed

    def data_received(self, data: bytes) -> None:
        """Parse what arrives. After the end it is read and discarded: the caller may still be sending what
        was rejected, and closing the connection under it would lose the answer."""
        if self.is_ended:
            return
        if len(data) <= PIECE and not self._rest:
            self._parse(data)
        else:
            self._rest = bytes(self._rest) + data if self._rest else data
            self._parse_rest()
        if self._intake is not None:
            self._intake.data_was_received()

    def pause_writing(self) -> None:
        self._queue.is_blocked = True
        if not self.is_ended:
            self._deadline.set("unread", self._port.limits.unread)
            self._reading.pause()

    def resume_writing(self) -> None:
        self._queue.is_blocked = False
        if not self.is_ended:
            self._be_patient()
            self.loop.call_soon(self._queue.next)

    @property
    def _reading(self) -> Intake:
        assert self._intake is not None, "it is open"
        return self._intake

    def _parse_rest(self) -> None:
        """Parse more of the pieces that wait, within bounds."""
        for _ in range(PIECES):
            if self._queue.has_waiting or not self._queue.goes_on:
                return
            rest = memoryview(self._rest)
            piece, self._rest = bytes(rest[:PIECE]), rest[PIECE:]
            if not piece:
                (self.end if self._is_half_closed else self._reading.resume)()
                return
            self._parse(piece)
        self._reading.pause()
        self.loop.call_soon(self._parse_rest)

    def _parse(self, piece: bytes) -> None:
        queue, reader = self._queue, self._reader
        queue.is_busy = False
        try:
            reader.feed(piece)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._stumble(error)
        else:
            if reader.is_begun and not queue.is_ended and reader.count(len(piece), self.send) and queue.goes_on and not queue.is_over:
                self._deadline.set("slow", self._port.limits.request_deadline)
        if queue.has_waiting and not queue.is_ended:
            self._reading.pause()
            if not queue.is_parked:
                self.loop.call_soon(queue.next)

    def _stumble(self, error: Exception) -> None:
        """Handle an error of the parser, after which nothing more is parsed."""
        if self.is_ended:
            return  # as it should: something follows the last call
        if not isinstance(error, httptools.HttpParserCallbackError):
            self._queue.reject("garbled", text_answer(400, f"this is not HTTP/1.1: {error}", close=True))
            return
        cause = error.__context__
        log.write("failed", "error", phase="connection", error=log.trace(cause if isinstance(cause, Exception) else error))
        self._port.cut("garbled")
        self.end_now()

    # What the queue tells

    def send(self, data: bytes) -> None:
        self.transport.write(data)

    def answered(self, *, is_good: bool) -> None:
        if not self._is_unproven:
            self._port.places.use(self)
        elif is_good:
            self._is_unproven = False
            self._port.places.prove(self)

    def read_on(self) -> None:
        self._be_patient()
        self.loop.call_soon(self._parse_rest)

    # The end

    def say_goodbye(self, answer: bytes = GOODBYE_ANSWER) -> None:
        """End a connection on which no call is on its way, as far as this side can see. A call may have been
        sent at this very moment and would be lost, as the API server never retries it. Therefore an answer is
        sent: to such a call it says to try again, and Go's client drops it otherwise, with the connection."""
        self.send(answer)
        self.end()

    def evict(self) -> None:
        """End the connection to make room; an idle one that was used gets an answer, as in
        ``say_goodbye``."""
        self._port.cut("crowded")
        if not self._is_unproven and self.is_idle:
            self._port.places.part(self)
            self.say_goodbye(MAKES_ROOM)
        else:
            self.end_now()

    def end_now(self) -> None:
        """End the connection at once."""
        self._queue.is_ended = True
        if self.is_open:
            self.transport.abort()
        else:
            self.drop()

    def end(self) -> None:
        """End the connection after what was written. What the caller still sends is read for a while, as an
        abort would lose the answer."""
        self._queue.is_ended = True
        self._reader.forsake()
        self._queue.forsake()
        self._rest = b""
        self._deadline.set("goodbye", self._port.limits.unread if self._queue.is_blocked else GOODBYE)
        with contextlib.suppress(OSError, RuntimeError):  # gone already
            self._reading.resume()
            self._reading.read_all()
            if self.transport.can_write_eof():
                self.transport.write_eof()
            else:  # TLS has its own way of ending one side
                self.transport.close()

    def _be_patient(self) -> None:
        limits = self._port.limits
        if self._reader.is_begun:
            self._deadline.set("slow", limits.request_deadline)
        else:
            self._deadline.set("idle", limits.keep_alive)

    def _miss(self, reason: str) -> None:
        """End the connection, whose deadline for ``reason`` has passed."""
        if reason in LAST_ANSWERS and not self._queue.has_calls:
            self._queue.reject(reason, LAST_ANSWERS[reason])
        elif reason == "idle":
            self._port.cut("idle")
            self.end()
        else:
            if reason != "goodbye":
                self._port.cut(reason)
            self.end_now()


def is_named(transport: asyncio.BaseTransport, names: AbstractSet[str]) -> bool:
    """Return whether the caller's certificate has one of the names; without ``names`` any caller does."""
    return not names or not names.isdisjoint(_names(transport.get_extra_info("peercert") or {}))


def _names(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Yield the common name and the alternative names: DNS names, addresses, URIs."""
    for attributes in certificate.get("subject", ()):
        yield from (value for key, value in attributes if key == "commonName")
    yield from (value for _, value in certificate.get("subjectAltName", ()))
