"""A listening socket and uvicorn's server behind it, with the limits that uvicorn lacks and signals left to the process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette

from webhook.connection import Connection
from webhook.limits import BOUNDS, GOODBYE, HANDSHAKE, HEALTH_CONNECTIONS, Limits

BACKLOG = 2048
"""Connections that wait to be accepted: the burst of a thousand-pod Job opens about as many at once."""
SPARE_FILES = 64
"""Open files beside connections: listeners, logs, the interpreter's own, policies while they are read."""


class StartError(Exception):
    """The server cannot start; the message is the line to print."""


class Server(uvicorn.Server):
    """One port. ``context`` None: plain HTTP. ``on_cut`` is told why a connection was ended."""

    def __init__(self, app: Starlette, context: ssl.SSLContext | None, limits: Limits, on_cut: Callable[[str], None]) -> None:
        super().__init__(_config(app, limits))
        self._context = context
        self._limits = limits
        self._on_cut = on_cut

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept calls. uvicorn's own has no word for the deadlines of TLS."""
        tls: dict[str, Any] = {}
        if self._context is not None:
            tls = {"ssl": self._context, "ssl_handshake_timeout": HANDSHAKE, "ssl_shutdown_timeout": GOODBYE}
        loop = asyncio.get_running_loop()
        self.servers = [await loop.create_server(self._connection, sock=sock, backlog=BACKLOG, **tls) for sock in sockets or ()]
        self.started = True

    def _connection(self) -> Connection:
        return Connection(limits=self._limits, on_cut=self._on_cut, config=self.config, server_state=self.server_state, app_state={})

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None: the process stops both of its servers, in order."""
        yield


def _config(app: Starlette, limits: Limits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=limits.keep_alive,
        timeout_graceful_shutdown=limits.drain,
    )


def listen(option: str, host: str, port: int) -> socket.socket:
    """A socket that listens. Raises StartError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server(
            (host, port), family=family, backlog=BACKLOG, dualstack_ipv6=host == "::" and socket.has_dualstack_ipv6()
        )
    except (OSError, UnicodeError) as error:
        raise StartError(f"cannot listen on {host} port {port}: {_reason(error)}; give another {option} HOST:PORT") from None


def make_room(connections: int) -> None:
    """Let the process have that many connections open, and as many more as the system lets it: those in a TLS handshake do not
    count yet. Raises StartError where the system does not allow even the first."""
    wanted = connections + HEALTH_CONNECTIONS + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        room = hard - HEALTH_CONNECTIONS - SPARE_FILES
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
