"""A listening socket and the connections behind it: how many there may be, who makes room, and how they end."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
from collections.abc import Callable
from time import monotonic

from webhook import logs
from webhook.bodies import BodyMemory
from webhook.channel import Channel
from webhook.connection import Connection
from webhook.http import Application
from webhook.limits import BOUNDS, HEALTH_CONNECTIONS, TURNED_AWAY, Limits
from webhook.port import SILENT
from webhook.tls import Handshakes, TlsChannel

BACKLOG = 2048
"""Connections that wait to be accepted: the burst of a thousand-pod Job opens about as many at once."""
KERNEL_IN = 128 * 2**10
KERNEL_OUT = 64 * 2**10
"""Bytes that the kernel holds for a connection; Linux takes twice as many with its own. Left to itself it let one caller that sends and
never reads have 6 MB, which count as the process's in a container. A pod of 3 MiB then takes 24 round trips."""
SPARE_FILES = 64
"""Open files beside connections: listeners, logs, the interpreter's own, policies while they are read."""
MORE_FILES = HEALTH_CONNECTIONS + 2 * TURNED_AWAY + SPARE_FILES
"""that the process may need beside the connections of the first port"""
DIALLING = 1.0
"""Seconds that a connection without a call gets when the server stops: who dials does so to send one, and sends it at once."""
NEWCOMERS = 8
"""The part of all connections, one in so many, that may be at each stage of dialling before it is the first to make room."""
LOOK = 0.02
"""Seconds between two looks at what is left when the server stops."""


class StartError(Exception):
    """The server cannot start; the message is the line to print."""


class Server:
    """One port; ``port.Port`` for its connections. ``context`` None: plain HTTP. ``on_cut`` is told why a connection was ended."""

    def __init__(self, app: Application, context: ssl.SSLContext | None, limits: Limits, on_cut: Callable[[str], None]) -> None:
        self.app = app
        self.limits = limits
        self.bodies = BodyMemory(limits.body_memory)
        self.cut = on_cut
        self.stopping = False
        self._context = context
        self._connections: dict[Connection, None] = {}
        """all, handshakes included"""
        self._unproven: tuple[dict[Connection, None], ...] = ({}, {}, {})
        """those that never had an answer of 200, by stage, the oldest first: they make room for others"""
        self._turned_away: dict[Connection, None] = {}
        """those that are over the limit"""

    async def start(self, listener: socket.socket) -> None:
        """Accept calls."""
        self.loop = asyncio.get_running_loop()
        self._handshakes = Handshakes(self.loop)
        self._server = await self.loop.create_server(self._channel, sock=listener, backlog=BACKLOG)

    async def stop(self, seconds: float) -> None:
        """Take no new connection. Whoever has sent the first byte of a call gets its answer, within ``seconds``; then all end."""
        self.stopping = True
        self._server.close()
        started = monotonic()
        while self._connections and monotonic() - started < seconds:
            self._end_idle(monotonic() - started)
            await asyncio.sleep(LOOK)
        if self._connections:
            logs.write("drain_over", "warning", connections=len(self._connections))
        for connection in list(self._connections):
            connection.end_now()

    def reached(self, connection: Connection, stage: int) -> None:
        """See ``port.Port``."""
        before = self._unproven[stage - 1]
        if connection in before:
            del before[connection]
            self._unproven[stage][connection] = None

    def proven(self, connection: Connection) -> None:
        """See ``port.Port``."""
        for stage in self._unproven:
            stage.pop(connection, None)

    def gone(self, connection: Connection) -> None:
        """See ``port.Port``."""
        for kind in (self._connections, *self._unproven, self._turned_away):
            kind.pop(connection, None)

    def _channel(self) -> Channel:
        if self._context is None:
            return Channel(self._accept, self.loop)
        return TlsChannel(self._accept, self._handshakes, self._context)

    def _accept(self, channel: Channel) -> Connection:
        """Where there are too many, one of those that never asked for anything goes. Where all did, the new one is told to
        come back; and where too many are being told so, it ends without a word."""
        over = len(self._connections) >= self.limits.connections + len(self._turned_away)
        if over and any(self._unproven):
            self._evict()
            over = False
        connection = Connection(self, channel, over=over)
        self._connections[connection] = None
        (self._turned_away if over else self._unproven[SILENT])[connection] = None
        if len(self._turned_away) > TURNED_AWAY:
            connection.evict()
        return connection

    def _evict(self) -> None:
        """The oldest of those that came least far: a flood of what costs its sender nothing pushes out no caller that does more. But
        where few are at a stage, some of them dial in earnest, and the places are held by those of another."""
        few = self.limits.connections // NEWCOMERS
        most = max(self._unproven, key=len)
        oldest = next(iter(next((stage for stage in self._unproven if len(stage) > few), most)))
        self.gone(oldest)
        oldest.evict()

    def _end_idle(self, since: float) -> None:
        for connection in list(self._connections):
            if connection.is_idle and (since > DIALLING or not any(connection in stage for stage in self._unproven)):
                connection.say_goodbye()


def listen(option: str, host: str, port: int) -> socket.socket:
    """A socket that listens. Raises StartError."""
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
    """Let the process have that many connections open, and as many more as the system lets it. Raises StartError where the system
    does not allow even the first."""
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
    """Python's own text for an address in use repeats the address."""
    if isinstance(error, OSError) and error.errno and error.errno > 0 and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error)
