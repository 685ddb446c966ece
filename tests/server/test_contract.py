"""What is relied on of the inside of uvicorn, httptools and uvloop: an upgrade that changes one of these things fails here."""

from __future__ import annotations

import asyncio
import inspect
import logging
import socket
import ssl
from pathlib import Path
from typing import Any

import httptools
import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
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


@pytest.mark.parametrize(
    ("made", "names"),
    [
        (HttpToolsProtocol.__init__, "self config server_state app_state _loop"),
        (HttpToolsProtocol._start_asgi_task, "self cycle app"),
        (
            RequestResponseCycle.__init__,
            "self scope transport flow logger access_logger access_log default_headers message_event expect_100_continue keep_alive "
            "on_response",
        ),
    ],
)
def test_what_is_called_takes_what_it_took(made: Any, names: str) -> None:
    """By name and in this order."""
    assert list(inspect.signature(made).parameters) == names.split()


def test_the_parser_calls_these_methods_of_the_protocol() -> None:
    """All that ``Requests`` replaces are there to be replaced, and the protocol has no other by which a parser could tell it something."""
    callbacks = {name for name in vars(HttpToolsProtocol) if name.startswith("on_")}
    assert callbacks == {
        *("on_message_begin", "on_url", "on_header", "on_headers_complete", "on_body", "on_message_complete"),
        "on_response_complete",
    }


def test_what_a_protocol_has_from_its_start() -> None:
    """The parser, the ASGI application, the event loop and the state that the server shares with it."""

    async def make() -> HttpToolsProtocol:
        return HttpToolsProtocol(config(), ServerState(), {}, asyncio.get_running_loop())

    made = run(make())
    assert isinstance(made.parser, httptools.HttpRequestParser)
    assert made.app is hello
    assert [vars(made)[name] for name in ("transport", "flow", "cycle", "client", "server", "scheme")] == [None] * 6


def test_leniency_behind_the_last_call_can_be_taken_back() -> None:
    """uvicorn's parser reads on behind a call that ends the connection; ours says that there is something."""
    parser = httptools.HttpRequestParser(object())
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    parser.set_dangerous_leniencies(lenient_data_after_close=False)
    with pytest.raises(httptools.HttpParserError):
        parser.feed_data(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n" + GET)


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


def cycle(transport: Transport, answered: Any, *, keep_alive: bool) -> RequestResponseCycle:
    quiet = logging.getLogger("quiet")
    made = RequestResponseCycle(
        scope={"method": "GET"},  # type: ignore[typeddict-item]
        transport=transport,  # type: ignore[arg-type]
        flow=FlowControl(transport),  # type: ignore[arg-type]
        logger=quiet,
        access_logger=quiet,
        access_log=False,
        default_headers=[],
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=keep_alive,
        on_response=answered,
    )
    made.more_body = False
    made.message_event.set()
    return made


@pytest.mark.parametrize("keep_alive", [True, False])
def test_a_cycle_writes_closes_and_tells_in_this_order(keep_alive: bool) -> None:
    """The status line begins the first write; the last one is followed by a close where the connection is to end, then by the callback."""

    async def ask() -> list[Any]:
        transport = Transport()
        await cycle(transport, lambda: transport.done.append("answered"), keep_alive=keep_alive).run_asgi(hello)
        return transport.done

    head, body, *rest = run(ask())
    assert head.startswith(b"HTTP/1.1 200 ")
    assert (b"connection: close\r\n" in head) is not keep_alive
    assert body == b"hi"
    assert rest == ["answered"] if keep_alive else ["close", "answered"]


def test_a_cycle_whose_application_fails_ends_with_500_and_a_close() -> None:
    """So that a mistake in a page holds no connection."""

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise LookupError

    async def ask() -> list[Any]:
        transport = Transport()
        logging.getLogger("quiet").disabled = True
        await cycle(transport, lambda: None, keep_alive=True).run_asgi(broken)
        return transport.done

    head, *_, last = run(ask())
    assert head.startswith(b"HTTP/1.1 500 ")
    assert last == "close"


def test_reading_is_paused_and_resumed_once() -> None:
    """However often it is asked for."""
    transport = Transport()
    flow = FlowControl(transport)  # type: ignore[arg-type]
    for ask in (flow.pause_reading, flow.pause_reading, flow.resume_reading, flow.resume_reading):
        ask()
    assert transport.done == ["pause_reading", "resume_reading"]


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
    ours.setblocking(False)
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
