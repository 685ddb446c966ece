"""A channel within TLS: ``ssl.SSLObject`` between two buffers.

It is not the event loop's own, for four reasons: a connection counts from the moment it is accepted, its handshake has a deadline
and is counted when it fails, one that is idle holds no buffer of 256 KiB, and a call takes 28 us of CPU where uvloop's takes 47.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import Callable

from webhook.channel import PIECE, Channel, Receiver

FEEDS = 3
"""Of bytes, until there must be a whole record: the rest of ``PIECE`` or more, ``PIECE``, and the few that a record has beside what it
holds. Where there is none, the caller only changes its key, which costs 16 us for 27 bytes: what is read at once takes 150 ms."""
HANDSHAKES = 8
"""Steps of handshakes in one turn of the event loop: 1.5 ms. A flood of them then holds up no call on a connection that is open."""


class Handshakes:
    """Whose turn it is: those that came first, a few at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._waiting: deque[TlsChannel] = deque()

    def wait(self, channel: TlsChannel) -> None:
        """``channel.shake`` is called when it is its turn."""
        self._waiting.append(channel)
        if len(self._waiting) == 1:
            self.loop.call_soon(self._turn)

    def _turn(self) -> None:
        try:
            for _ in range(min(HANDSHAKES, len(self._waiting))):
                self._waiting.popleft().shake()
        finally:  # a mistake of ours in one ends the turn, not all that wait
            if self._waiting:
                self.loop.call_soon(self._turn)


class TlsChannel(Channel):
    """The receiver gets plain bytes once the handshake is done, and sends plain bytes."""

    __slots__ = ("_begun", "_handshakes", "_in", "_open", "_out", "_tls")

    def __init__(self, accepted: Callable[[Channel], Receiver], handshakes: Handshakes, context: ssl.SSLContext) -> None:
        super().__init__(accepted, handshakes.loop)
        self._handshakes = handshakes
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)
        self._begun = self._open = False

    def connection_lost(self, exc: Exception | None) -> None:
        """A caller that leaves in the middle of its handshake is counted; one that only looked whether the port is open is not."""
        if self._begun and not (self._open or self._closing):
            self._receiver.broke("handshake")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self._rest = data
        if not self._open:
            if not self._begun:
                self._begun = True
                self._receiver.greeted()
            self._transport.pause_reading()
            self._handshakes.wait(self)
            return
        self._feed()
        self._turn()
        if self._out.pending:  # an answer of TLS itself, to a new key
            self._flush()

    def shake(self) -> None:
        """The next step of the handshake, with what has come."""
        if self._closing:
            return
        self._feed()
        if self._shaken():
            self._turn()
        elif not self._closing:
            self._transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send it, record by record."""
        if self._closing:
            return
        try:
            sent = self._tls.write(data)
            while sent < len(data):
                self._flush()
                sent += self._tls.write(memoryview(data)[sent:])
        except ssl.SSLError:
            self._break("garbled")
        else:
            self._transport.write(self._out.read())

    def close(self) -> None:
        """With the end of TLS before that of TCP."""
        if not self._closing and self._open:
            self._say_goodbye()
        super().close()

    def _begin(self) -> None:
        """It opens with the handshake."""

    def _shaken(self) -> bool:
        """Whether the handshake is done, with what has come."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush()
                if not self._feed():
                    return False
            except (ssl.SSLError, OSError):
                self._flush()  # what was wrong with it, for the caller to read
                self._break("handshake")
                return False
        self._flush()
        self._open = True
        self._receiver.opened()
        return not self._closing

    def _piece(self) -> bytes:
        """What the next record holds; nothing where it has not come whole."""
        for _ in range(FEEDS):
            if not (self._in.pending or self._feed()):
                return b""
            try:
                piece = self._tls.read(PIECE)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                self._break("garbled")
                return b""
            else:
                if not piece:  # the end of TLS, by the caller's word
                    self._receiver.finished()
                return piece
        self._break("garbled")
        return b""

    def _feed(self) -> bool:
        """The next of what came, for OpenSSL to read: little at a time, for its buffer never shrinks."""
        rest = self._rest
        if not rest:
            return False
        if len(rest) <= 2 * PIECE:
            self._in.write(rest)
            self._rest = b""
        else:
            rest = memoryview(rest)
            self._in.write(rest[:PIECE])
            self._rest = rest[PIECE:]
        return True

    def _flush(self) -> None:
        self._transport.write(self._out.read())

    def _say_goodbye(self) -> None:
        with contextlib.suppress(ssl.SSLError, OSError):  # the caller's own goodbye is not waited for
            self._tls.unwrap()
        self._flush()

    def _break(self, reason: str) -> None:
        if not self._closing:
            self._receiver.broke(reason)
            self.abort()
