"""A uvicorn server with our own ports, signals and shutdown: how connections are accepted, and how they end
when it stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from time import monotonic

import uvicorn
from starlette.applications import Starlette

from server.connection import Connection
from server.limits import NO_PAGE_READS, Limits
from server.listener import Listener
from server.places import Holder
from server.port import Port
from server.routes import Pages, direct
from telemetry import log

DIALLING = 1.0
"""Seconds that a connection without a call gets when the server stops: a caller connects to send one, and
does so at once."""
LOOK = 0.02
"""Seconds between two checks for remaining connections when the server stops."""


class Server(uvicorn.Server):
    """One port.

    ``context`` None: plain HTTP. ``on_cut``, ``always``, ``names``: see ``Port``. ``form``: bytes of a body that pages can read, which
    then read all headers as well; 0: they read no body.
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
        form: int = 0,
    ) -> None:
        factory = None if context is None else lambda _config, _default: context
        config = uvicorn.Config(
            app, http=Connection, ws="none", lifespan="off", interface="asgi3", proxy_headers=False, server_header=False, date_header=False,
            access_log=False, log_config=None, log_level=logging.WARNING, ssl_context_factory=factory,
        )  # fmt: skip
        super().__init__(config)
        applications = direct(app)
        most = form or max((application.most for application in applications.values()), default=NO_PAGE_READS)
        self.port = Port(
            limits=limits, applications=applications, pages=Pages(app, form, most), cut=on_cut, always=always, names=names,
            all_headers=form > 0,
        )  # fmt: skip
        self._drain = 0.0
        self._stop = asyncio.Event()

    async def start(self, listening: socket.socket) -> None:
        """Start accepting calls."""
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
        connection_from = partial(Connection, self.port, self)
        self._listeners = [Listener(self.port, each, self.config.ssl, connection_from) for each in sockets or ()]
        self.started = True

    async def main_loop(self) -> None:
        """Wait for the stop; no header has to be renewed each second, so nothing ticks."""
        await self._stop.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all connections. uvicorn's own shutdown closes idle ones without an answer, under a call in
        transit."""
        self.port.stopping.set()
        for listener in self._listeners:
            listener.close()
        started = monotonic()
        while left := list(self.port.places):
            if monotonic() - started >= self._drain:
                log.write("drain_over", "warning", connections=len(left))
                break
            self._end_idle(left, monotonic() - started)
            await asyncio.sleep(LOOK)
        for connection in list(self.port.places):
            connection.end_now()

    def _end_idle(self, connections: list[Holder], since: float) -> None:
        for connection in connections:
            if since <= DIALLING and self.port.places.is_dialling(connection):
                continue
            if connection.is_idle:
                connection.say_goodbye()
            elif not connection.is_open:
                connection.end_now()
