"""The bytes of one connection: in, they come to a ``Receiver`` in pieces; out, they are sent at once. ``tls`` has the same within TLS."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

PIECE = 16 * 2**10
"""Bytes: what a record of TLS holds at most, so that one read takes a whole one and nothing stays inside."""
PIECES = 4
"""Handled in one turn of the event loop: who sends more waits for its next turn, and others are served meanwhile."""
WRITE_BUFFER = 64 * 2**10
"""Bytes of answers that a caller may leave unread, beside what the kernel holds, before no further call of it is read."""


class Receiver(Protocol):
    """A connection, as its channel sees it."""

    def greeted(self) -> None:
        """The first byte came, of a handshake."""

    def opened(self) -> None:
        """Bytes can go both ways from now on."""

    def received(self, piece: bytes) -> None:
        """The next bytes of the caller, at most ``PIECE``."""

    def blocked(self, blocked: bool) -> None:
        """True: the caller leaves answers unread. False: it reads again."""

    def finished(self) -> None:
        """The caller sends nothing more."""

    def broke(self, reason: str) -> None:
        """It is about to be ended, for one of ``metrics.CUTS``."""

    def lost(self) -> None:
        """It is gone."""


class Channel(asyncio.Protocol):
    """Without TLS. ``accepted`` gives the receiver that belongs to it."""

    __slots__ = ("_accepted", "_closing", "_loop", "_paused", "_receiver", "_rest", "_transport")

    def __init__(self, accepted: Callable[[Channel], Receiver], loop: asyncio.AbstractEventLoop) -> None:
        self._accepted = accepted
        self._loop = loop
        self._closing = self._paused = False
        self._rest: bytes | memoryview = b""
        """what came and is not handled; while there is some, nothing else is read"""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        self._receiver = self._accepted(self)
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._receiver.lost()
        del self._receiver  # it holds this object: what is gone is freed at once, and not left to the garbage collector

    def data_received(self, data: bytes) -> None:
        """After ``close`` it is dropped, and read all the same: the caller may still be sending what was refused, and ending the
        connection under it would take our answer along."""
        if not self._closing:
            self._rest = data
            self._turn()

    def pause_writing(self) -> None:
        self._receiver.blocked(True)

    def resume_writing(self) -> None:
        self._receiver.blocked(False)

    def write(self, data: bytes) -> None:
        """Send it, or hold it until the caller reads."""
        if not self._closing:
            self._transport.write(data)

    def pause(self) -> None:
        """No piece comes until ``resume``."""
        self._paused = True
        self._transport.pause_reading()

    def resume(self) -> None:
        """The next piece comes with a turn of the event loop to come."""
        self._paused = False
        self._loop.call_soon(self._turn)

    def close(self) -> None:
        """Nothing follows. The caller ends the connection when it has read all, or ``abort`` does."""
        if self._closing:
            return
        self._closing, self._rest = True, b""
        with contextlib.suppress(OSError, RuntimeError):  # gone already
            self._transport.resume_reading()
            self._transport.write_eof()

    def abort(self) -> None:
        """End it now, whatever is on its way."""
        self._closing, self._rest = True, b""
        self._transport.abort()

    def _begin(self) -> None:
        self._receiver.opened()

    def _turn(self) -> None:
        """Hand on what there is, within bounds."""
        for _ in range(PIECES):
            if self._closing or self._paused:
                return
            piece = self._piece()
            if not piece:
                self._transport.resume_reading()
                return
            self._receiver.received(piece)
        self._transport.pause_reading()
        self._loop.call_soon(self._turn)

    def _piece(self) -> bytes:
        rest = memoryview(self._rest)
        self._rest = rest[PIECE:]
        return bytes(rest[:PIECE])
