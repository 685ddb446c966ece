"""A uvicorn server with our own ports, signals and shutdown: how connections are accepted, and how they end
when it stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from time import monotonic

import uvicorn
from starlette.applications import Starlette

from server.bodies import BodyMemory
from server.http import Application
from server.limits import NO_PAGE_READS, Limits
from server.listener import Listener
from server.places import Holder, Places
from server.protocol import Protocol
from server.routes import direct
from telemetry import log

DIALLING = 1.0
"""Seconds that a connection without a call gets when the server stops: a caller connects to send one, and
does so at once."""
LOOK = 0.02
"""Seconds between two checks for remaining connections when the server stops."""


class Server(uvicorn.Server):
    """One port, and what its connections share.

    ``context`` None: plain HTTP. ``on_cut`` is called with the reason for which a connection was ended, one
    of ``metrics.CUTS``. ``always``: paths that are answered even if there is no place for their caller.
    ``names``: the caller's client certificate must have one of these; if empty, any caller is accepted.
    """

    def __init__(
        self,
        app: Starlette,
        context: ssl.SSLContext | None,
        limits: Limits,
        on_cut: Callable[[str], None],
        *,
        always: AbstractSet[bytes] = frozenset(),
        names: AbstractSet[str] = frozenset(),
    ) -> None:
        factory = None if context is None else lambda _config, _default: context
        config = uvicorn.Config(
            app, http=Protocol, ws="none", lifespan="off", interface="asgi3", proxy_headers=False, server_header=False, date_header=False,
            access_log=False, log_config=None, log_level=logging.WARNING, ssl_context_factory=factory,
        )  # fmt: skip
        super().__init__(config)
        self.direct: Mapping[bytes, Application] = direct(app)
        """The applications that answer calls without a task, by path."""
        self.most = max((asked.most for asked in self.direct.values()), default=NO_PAGE_READS)
        """Bytes of a body that the ASGI application answers, beyond which nothing more is read."""
        self.always, self.names = always, names
        self.limits = limits
        self.bodies = BodyMemory(limits.body_memory)
        self.places = Places(limits.connections)
        self.cut = on_cut
        self.stopping = False
        """True if every answer is the last one of its connection."""
        self._drain = 0.0
        self._stop = asyncio.Event()

    async def start(self, listening: socket.socket) -> None:
        """Start accepting calls."""
        self.loop = asyncio.get_running_loop()
        self._served = asyncio.create_task(self.serve([listening]))
        while not self.started:
            if self._served.done():
                self._served.result()
            await asyncio.sleep(0)

    async def stop(self, seconds: float) -> None:
        """Stop accepting connections.

        A caller that has sent the first byte of a call gets its answer, within ``seconds``; then all
        connections end.
        """
        self._drain = seconds
        self._stop.set()
        await self._served

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process: see ``webhook.serve``."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Do as uvicorn does, except for the way in which connections are accepted."""
        made = lambda source: Protocol(self, self.config, source)  # noqa: E731
        self._listeners = [Listener(self, each, self.config.ssl, made) for each in sockets or ()]
        self.started = True

    async def main_loop(self) -> None:
        """Wait for the stop; no header has to be renewed each second, so nothing ticks."""
        await self._stop.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all connections. uvicorn's own shutdown closes idle ones without an answer, under a call in
        transit."""
        self.stopping = True
        for listener in self._listeners:
            listener.close()
        started = monotonic()
        while left := list(self.places):
            if monotonic() - started >= self._drain:
                log.write("drain_over", "warning", connections=len(left))
                break
            self._end_idle(left, monotonic() - started)
            await asyncio.sleep(LOOK)
        for connection in list(self.places):
            connection.end_now()

    def _end_idle(self, connections: list[Holder], since: float) -> None:
        for connection in connections:
            if since <= DIALLING and self.places.is_dialling(connection):
                continue
            if connection.is_idle:
                connection.say_goodbye()
            elif not connection.is_open:
                connection.end_now()
