"""The sockets of a pool of connections, all of which can be ended, whoever holds them by then.

An event loop must not be closed while a transport is open: uvloop warns of each (ResourceWarning), and where warnings are errors it does
not close that one and waits for its peer, for ever (uvloop/handles/handle.pyx, __uv_walk_close_all_handles_cb).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import Any

IDLE, BETWEEN, PROBES = 15, 5, 3
"""TCP keepalive: a peer that is gone without a word is found in IDLE + PROBES * BETWEEN = 30 s"""
USER_TIMEOUT = 20_000
"""milliseconds in which what was sent must be acknowledged (TCP_USER_TIMEOUT, Linux), as client-go's HTTP/2 health check has it nearly"""
GONE = 1.0
"""Seconds that ended connections are waited for: they need some turns of the event loop, and nothing of the peer"""
TURN = 0.001
"""seconds between two looks"""


class Sockets:
    """Made for one pool, on one event loop."""

    def __init__(self) -> None:
        self._made: list[socket.socket] = []
        self._ended = False

    def made(self, address: Any) -> socket.socket:
        """A new one, for a row of ``getaddrinfo``. Raises OSError after ``end``."""
        if self._ended:
            raise OSError("the connections to it were closed")
        family, kind, protocol, *_ = address
        one = socket.socket(family, kind, protocol)
        _probe(one)
        self._made = [*self._open(), one]
        return one

    def end(self) -> None:
        """The event loop reads their end, in whatever state they are; no more are made."""
        self._ended = True
        for one in self._open():
            with contextlib.suppress(OSError):  # not connected yet, or no longer
                one.shutdown(socket.SHUT_RDWR)

    async def gone(self) -> None:
        """Once all are closed, or after GONE seconds."""
        deadline = time.monotonic() + GONE
        while self._open() and time.monotonic() < deadline:
            await asyncio.sleep(TURN)

    def _open(self) -> list[socket.socket]:
        """A transport that closes takes the descriptor out of its socket."""
        return [one for one in self._made if one.fileno() >= 0]


def _probe(one: socket.socket) -> None:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = (("TCP_KEEPIDLE", IDLE), ("TCP_KEEPINTVL", BETWEEN), ("TCP_KEEPCNT", PROBES), ("TCP_USER_TIMEOUT", USER_TIMEOUT))
    for name, value in wanted:
        if hasattr(socket, name):  # macOS and Windows have some of them
            one.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
