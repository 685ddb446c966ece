"""The composition root of ``berth serve``: settings, files, snapshot, certificates, socket, server; start and stop."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import ssl
import sys
from datetime import UTC, datetime
from pathlib import Path

import uvicorn

from certs.authority import CertificateError
from certs.files import self_signed
from certs.serving import server_context
from webhook import logs
from webhook.app import make_app
from webhook.settings import Settings
from webhook.sources import SourcesError, load

BAD_INPUT = 2
IDLE_CLOSE = 1.0
"""Seconds that an idle connection gets to say goodbye when the server stops; the API server answers at once."""


class StartError(Exception):
    """The server cannot start; the message is the line to print."""


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code: 0, or 2 with one line per reason when it cannot start."""
    try:
        loaded = load(settings.sources)
        listener = _listen(settings.host, settings.port)
        context, ca = _tls(settings)
    except (SourcesError, StartError, CertificateError) as error:
        for line in str(error).splitlines():
            print(line if line.startswith("berth: ") else f"berth: {line}", file=sys.stderr)
        return BAD_INPUT
    for line in loaded.warnings:
        print(line, file=sys.stderr)
    server = _Server(_config(settings, make_app(loaded.snapshot, body_limit=settings.body_limit), context))
    server.ready = _ready_line(settings, listener, ca, len(loaded.snapshot.policies))
    gc.collect()
    gc.freeze()  # what is loaded stays: without it a full collection pauses every review behind it by tens of milliseconds
    _stop_quietly()
    server.run(sockets=[listener])
    return 0


class _Server(uvicorn.Server):
    """uvicorn's server that says one line when it accepts calls."""

    ready = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(self.ready, flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(IDLE_CLOSE, self._abort_idle)
        await super().shutdown(sockets)

    def _abort_idle(self) -> None:
        """A caller that does not answer the end of TLS would hold the process for 30 s; those in a call are waited for."""
        for connection in list(self.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle is None or cycle.response_complete:
                connection.transport.abort()


def _config(settings: Settings, app: object, context: ssl.SSLContext) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # Starlette's own ASGI types and uvicorn's are written differently
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=settings.keep_alive,
        timeout_graceful_shutdown=settings.drain,
        ssl_context_factory=lambda _config, _default: context,
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048, dualstack_ipv6=host == "::" and socket.has_dualstack_ipv6())
    except (OSError, UnicodeError) as error:
        raise StartError(f"cannot listen on {host} port {port}: {_reason(error)}; give another --listen HOST:PORT") from None


def _reason(error: OSError | UnicodeError) -> str:
    """Python's own text for an address in use repeats the address."""
    if isinstance(error, OSError) and error.errno and error.errno > 0 and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error)


def _tls(settings: Settings) -> tuple[ssl.SSLContext, Path | None]:
    """The context, and the CA file that callers trust where Berth made it."""
    if settings.tls_files:
        return server_context(*settings.tls_files), None
    assert settings.self_signed is not None, "Settings has one of the two"
    files = self_signed(settings.self_signed, settings.names, datetime.now(UTC))
    for note in files.notes:
        logs.write("certificate", note=note)
    return server_context(files.certificate, files.key), files.ca


def _ready_line(settings: Settings, listener: socket.socket, ca: Path | None, policies: int) -> str:
    url = settings.at_port(listener.getsockname()[1]).url
    trust = f", CA {ca}" if ca else ""
    return f"serving {url} (/mutate, /validate), {policies} {'policy' if policies == 1 else 'policies'}{trust}"


def _stop_quietly() -> None:
    """uvicorn raises the signal again after a clean stop, which would end a finished server with a traceback or -15."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
