"""What is relied on of the inside of uvicorn, httptools and uvloop: an upgrade that changes one of these things fails here."""

from __future__ import annotations

import asyncio
import inspect
import socket
import ssl
from pathlib import Path
from typing import Any

import httptools
import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from server.limits import Limits
from server.routes import starlette
from server.server import Server
from tests.support.calls.in_process import run, tls_contexts
from tests.testcluster.calls import PATIENCE

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application."""
    assert (await receive())["more_body"] is False
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


def config(**more: Any) -> uvicorn.Config:
    made = uvicorn.Config(hello, ws="none", lifespan="off", interface="asgi3", proxy_headers=False, log_config=None, **more)
    made.load()
    return made


class Transport:
    """Remembers what is done to it, in order."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def write(self, data: bytes) -> None:
        self.done.append(data)

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.done.append(name)


def test_a_protocol_takes_what_it_took() -> None:
    """By name and in this order."""
    assert list(inspect.signature(HttpToolsProtocol.__init__).parameters) == ["self", "config", "server_state", "app_state", "_loop"]


def test_what_a_protocol_has_from_its_start() -> None:
    """A parser that can be dropped, the event loop, and no address before it is connected."""

    async def make() -> HttpToolsProtocol:
        return HttpToolsProtocol(config(), ServerState(), {}, asyncio.get_running_loop())

    made = run(make())
    assert isinstance(made.parser, httptools.HttpRequestParser)
    assert [vars(made)[name] for name in ("transport", "flow", "cycle", "client", "server", "scheme")] == [None] * 6


def test_a_lost_connection_is_not_closed_again_where_it_was_lost_by_an_error() -> None:
    """Its cycle is told, and it is none of the server's connections any more."""

    async def lose() -> tuple[list[Any], ServerState, HttpToolsProtocol]:
        state, transport = ServerState(), Transport()
        made = HttpToolsProtocol(config(), state, {}, asyncio.get_running_loop())
        made.connection_made(transport)  # type: ignore[arg-type]
        assert made in state.connections
        made.connection_lost(ConnectionError())
        return transport.done, state, made

    done, state, made = run(lose())
    assert done == []
    assert not state.connections
    assert made.parser is None


def test_a_server_starts_waits_and_shuts_down_by_these_methods() -> None:
    """In this order, with the sockets; within them signals are captured, which ``Server`` leaves out."""
    done: list[str] = []

    class Recording(Server):
        def capture_signals(self) -> Any:
            done.append("capture_signals")
            return super().capture_signals()

        async def startup(self, sockets: Any = None) -> None:
            done.append(f"startup {len(sockets)}")
            self.started = True

        async def main_loop(self) -> None:
            done.append("main_loop")

        async def shutdown(self, sockets: Any = None) -> None:
            done.append("shutdown")

    async def serve() -> None:
        with socket.socket() as listening:
            await Recording(starlette([], {}), None, Limits(), done.append).serve([listening])

    run(serve())
    assert done == ["capture_signals", "startup 1", "main_loop", "shutdown"]


def test_a_context_of_ours_is_the_configs_own(tmp_path: Path) -> None:
    """Not a copy: the one whose certificates are swapped."""
    context, _ = tls_contexts(tmp_path)
    assert config(ssl_context_factory=lambda _config, _default: context).ssl is context


class Seen(asyncio.Protocol):
    """What a transport tells it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.calls.append("made")
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append("lost")


async def accepted(context: ssl.SSLContext) -> tuple[asyncio.Task[Any], Seen, socket.socket]:
    """A connection whose handshake is uvloop's now, and its other end."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - it takes no keyword
    seen = Seen()
    task = asyncio.create_task(asyncio.get_running_loop().connect_accepted_socket(lambda: seen, ours, ssl=context))
    await asyncio.sleep(0.05)
    return task, seen, theirs


def test_a_handshake_can_be_cancelled(tmp_path: Path) -> None:
    """The connection ends, and the protocol never hears of it."""
    context, _ = tls_contexts(tmp_path)

    async def cancel() -> tuple[list[str], bytes]:
        task, seen, theirs = await accepted(context)
        with theirs:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            theirs.settimeout(PATIENCE)
            return seen.calls, await asyncio.to_thread(theirs.recv, 1)

    assert run(cancel()) == ([], b"")


def test_a_handshake_that_fails_raises_oserror(tmp_path: Path) -> None:
    """Then too the protocol never hears of it."""
    context, _ = tls_contexts(tmp_path)

    async def fail() -> list[str]:
        task, seen, theirs = await accepted(context)
        with theirs:
            theirs.sendall(GET)
            with pytest.raises(OSError):
                await task
        return seen.calls

    assert run(fail()) == []


def test_a_tls_connection_that_is_closed_reads_on_and_drops_it(tmp_path: Path) -> None:
    """So that an answer reaches a caller that is still sending: its bytes are taken, and not told to the protocol."""
    context, client = tls_contexts(tmp_path)

    async def close() -> tuple[bytes, bool]:
        task, seen, theirs = await accepted(context)
        wrapped = asyncio.create_task(asyncio.to_thread(client.wrap_socket, theirs, server_hostname="localhost"))
        tls, _ = await wrapped, await task
        with tls:
            tls.settimeout(PATIENCE)
            transport: Any = seen.transport
            assert not transport.can_write_eof()
            transport.write(b"answer")
            transport.close()
            await asyncio.to_thread(tls.sendall, bytes(2**20))
            return await asyncio.to_thread(tls.recv, 100), "lost" in seen.calls

    assert run(close()) == (b"answer", False)
