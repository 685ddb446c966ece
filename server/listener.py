"""The listening socket: a connection takes a place when it is accepted, and is handed to uvloop's TLS at its
first byte.

uvloop's own accepting reports a connection only after its handshake; this module counts and bounds those
before it.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
from collections import deque
from collections.abc import Callable

from server.connection import Connection
from server.limits import BOUNDS, GOODBYE, HEALTH_CONNECTIONS, TURNED_AWAY
from server.places import SHAKING
from server.port import Port
from telemetry import log

BACKLOG = 2048
"""The listen backlog: the burst of a thousand-pod Job opens about as many connections at once."""
KERNEL_IN = 64 * 2**10
KERNEL_OUT = 64 * 2**10
"""Bytes of the kernel's buffers for a connection; Linux doubles them for its own overhead.

With the kernel's own sizing, one caller that sends and never reads took 6 MB, which count as the process's in
a container. With these, a pod of 3 MiB takes 24 round trips.
"""
SPARE_FILES = 64
"""Open files beside connections: listeners, logs, the interpreter's own, policies while they are read."""
MORE_FILES = HEALTH_CONNECTIONS + 4 * TURNED_AWAY + SPARE_FILES
"""Open files that the process may need beside the connections of the first port: on both ports, those turned
away and those that make room."""
ACCEPTS = 64
"""Connections accepted in one turn of the event loop."""
HANDSHAKES = 8
"""Handshakes begun in one turn of the event loop: 1.5 ms. A flood of them then delays no call on an open
connection."""
NO_FILES = 0.2
"""Seconds until the next attempt to accept, after the system had no file descriptor left."""


class StartError(Exception):
    """The server cannot start; the message is the line to print."""


class Listener:
    """Accepts connections until ``close``. ``connection_from`` returns the ``Connection`` for a caller at an address."""

    def __init__(
        self, port: Port, listening: socket.socket, context: ssl.SSLContext | None, connection_from: Callable[[str], Connection]
    ) -> None:
        self._port = port
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = listening
        self._context = context
        self._connection_from = connection_from
        self._greeted: deque[tuple[Connection, socket.socket]] = deque()
        """Connections whose first byte has arrived; their handshakes are begun in turn."""
        self._tasks: set[asyncio.Task[None]] = set()
        listening.setblocking(False)  # noqa: FBT003 - it takes no keyword
        self._watch()

    def close(self) -> None:
        """Stop accepting; the connections that were accepted go on."""
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def _watch(self) -> None:
        if self._socket is not None:
            self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTS):
            if self._socket is None:
                return
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.write("library", "error", logger="accept", text=str(error))
                self._loop.remove_reader(self._socket)
                self._loop.call_later(NO_FILES, self._watch)
                return
            accepted.setblocking(False)  # noqa: FBT003 - it takes no keyword
            self._welcome(self._connection_from(address[0]), accepted)

    def _welcome(self, connection: Connection, accepted: socket.socket) -> None:
        if self._context is None:
            self._connect(connection, accepted)
            return

        def drop() -> None:
            self._loop.remove_reader(accepted)
            accepted.close()
            connection.release()

        connection.drop = drop
        self._loop.add_reader(accepted, self._greet, connection, accepted)

    def _greet(self, connection: Connection, accepted: socket.socket) -> None:
        """Handle the first event: the first byte of a handshake, or the end of a caller that only probed the
        port."""
        try:
            first = accepted.recv(1, socket.MSG_PEEK)
        except OSError:
            first = b""
        if not first:
            connection.end_now()
            return
        self._loop.remove_reader(accepted)
        self._port.places.reached(connection, SHAKING)
        self._greeted.append((connection, accepted))
        if len(self._greeted) == 1:
            self._loop.call_soon(self._begin_handshakes)

    def _begin_handshakes(self) -> None:
        for _ in range(min(HANDSHAKES, len(self._greeted))):
            connection, accepted = self._greeted.popleft()
            if not connection.is_ended:
                self._connect(connection, accepted)
        if self._greeted:
            self._loop.call_soon(self._begin_handshakes)

    def _connect(self, connection: Connection, accepted: socket.socket) -> None:
        task = self._loop.create_task(self._connected(connection, accepted))
        connection.drop = task.cancel
        self._tasks.add(task)

        def done(_: object) -> None:
            self._tasks.discard(task)
            if not connection.is_open:
                accepted.close()
                connection.release()

        task.add_done_callback(done)

    async def _connected(self, connection: Connection, accepted: socket.socket) -> None:
        limits, seconds = self._port.limits, {}
        if self._context is not None:  # the deadlines of ``connection`` come first
            seconds = {"ssl_handshake_timeout": limits.handshake + 1, "ssl_shutdown_timeout": max(limits.unread, GOODBYE) + 1}
        try:
            await self._loop.connect_accepted_socket(lambda: connection, accepted, ssl=self._context, **seconds)
        except OSError:
            if not connection.is_ended:
                self._port.cut("handshake")


def listen(option: str, host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises StartError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server(
            (host, port), family=family, backlog=BACKLOG, dualstack_ipv6=host == "::" and socket.has_dualstack_ipv6()
        )
    except (OSError, UnicodeError) as error:
        raise StartError(f"cannot listen on {host} port {port}: {_reason(error)}; give another {option} HOST:PORT") from None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_IN)  # connections inherit both
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_OUT)
    return listener


def make_room(connections: int) -> None:
    """Raise the process's limit of open files as far as the system lets it.

    Raises StartError where that is too low for ``connections``.
    """
    wanted = connections + MORE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        room = hard - MORE_FILES
        fewer = f"give --connections {room}, or " if room >= BOUNDS["connections"].least else ""
        raise StartError(
            f"--connections {connections} needs {wanted} open files and this process may have {hard}; {fewer}raise the limit (ulimit -Hn)"
        )
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _reason(error: OSError | UnicodeError) -> str:
    """Return the reason; Python's own text for an address in use repeats the address."""
    if isinstance(error, OSError) and error.errno and error.errno > 0 and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error)
