"""uvicorn on one port."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import ssl
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette

from console.port.connection import GOODBYE, IDLE, MOST_CONNECTIONS, Connection

HANDSHAKE = 10.0
"""Seconds of a TLS handshake; asyncio's own bound is 60."""
SPARE_FILES = 256
"""Open files beside connections: handshakes under way, calls to the API server, logs."""


class Server(uvicorn.Server):
    """One port. ``context`` None: plain HTTP."""

    def __init__(self, app: Starlette, context: ssl.SSLContext | None) -> None:
        super().__init__(
            uvicorn.Config(
                app, http=Connection, ws="none", lifespan="off", interface="asgi3", proxy_headers=False, server_header=False,
                access_log=False, log_config=None, log_level=logging.ERROR, timeout_keep_alive=IDLE, timeout_graceful_shutdown=10,
            )
        )  # fmt: skip
        self._context = context

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Do as uvicorn does, with bounds on handshakes."""
        await self.lifespan.startup()
        _make_room()
        loop = asyncio.get_running_loop()
        handshake, shutdown = (None, None) if self._context is None else (HANDSHAKE, GOODBYE)
        self.servers = [
            await loop.create_server(
                self._connection,
                sock=one,
                ssl=self._context,
                backlog=self.config.backlog,
                ssl_handshake_timeout=handshake,
                ssl_shutdown_timeout=shutdown,
            )
            for one in sockets or ()
        ]
        self.started = True

    def _connection(self) -> Connection:
        return Connection(config=self.config, server_state=self.server_state, app_state={}, _loop=asyncio.get_running_loop())

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process."""
        yield


def _make_room() -> None:
    """Raise the process's limit of open files where it is lower than what callers may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
