"""One call of an application in this process, and one server of a port in it: what is asked goes through no process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from certs.authority import issue, make_ca
from server.http import Answer, Application, Call
from server.limits import Limits
from server.listener import listen
from server.routes import Pages, direct, response_of, starlette
from server.server import Server
from tests.testcluster.calls import PATIENCE

T = TypeVar("T")
JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """An answer as it goes out, taken apart again."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(app: Starlette, path: str, body: bytes = b"", headers: Mapping[str, str] = JSON, method: str = "POST") -> Received:
    """One call that is in whole: by the application that the server asks at the last byte, or else by a route of Starlette."""
    read = {name.encode(): value.encode() for name, value in headers.items()}
    asked = direct(app).get(path.encode()) if method == "POST" else None
    if asked is None:
        return asyncio.run(ask_asgi(app, path, body, headers, method))
    answer = answered(asked, Call(method.encode(), path.encode(), read, monotonic(), body, len(body)))
    return received_answer(answer.encoded(close=answer.close))


class StandIn:
    """What every application does with a call for which there is no place."""

    def turned_away(self, call: Call, answer: Answer) -> Answer:
        return answer


def answered(app: Application, call: Call) -> Answer:
    """The answer to a call that does not wait."""
    answer = app.answer(call, _unasked)
    assert answer is not None, "it waits, which needs an event loop"
    return answer


def _unasked(call: Call, answer: Answer) -> None:
    raise AssertionError(f"{call.path!r} was answered at once")


async def ask_asgi(app: Starlette, path: str, body: bytes = b"", headers: Mapping[str, str] = JSON, method: str = "POST") -> Received:
    """The same as any ASGI server would ask it."""
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope: Any = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": b"",
        "root_path": "",
        "headers": raw,
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    begun = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Received(status=sent[0]["status"], headers=begun, body=b"".join(each.get("body", b"") for each in sent))


def received_answer(wire: bytes) -> Received:
    """An answer off the wire."""
    head, _, body = wire.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert headers["content-length"] == str(len(body))
    return Received(status=int(first.split()[1]), headers=headers, body=body)


def read_answer(connection: socket.socket) -> Received:
    """One answer with a content-length. Where the machine is slow, its head and its body come in pieces."""
    wire = b""
    while b"\r\n\r\n" not in wire:
        wire += received(connection)
    length = int(re.search(rb"content-length: (\d+)", wire)[1])  # type: ignore[index]
    while len(wire) < wire.index(b"\r\n\r\n") + 4 + length:
        wire += received(connection)
    return received_answer(wire)


def received(connection: socket.socket) -> bytes:
    piece = connection.recv(65_536)
    assert piece, "the server ended the connection"
    return piece


def run(work: Coroutine[Any, Any, T]) -> T:
    """On the event loop that serves."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


class AnyPath(dict[bytes, Application]):
    """Every call by POST is this application's."""

    def __init__(self, app: Application) -> None:
        super().__init__()
        self._app = app

    def get(self, path: bytes, _default: object = None) -> Application:
        return self._app


def on_every_path(app: Application) -> Starlette:
    """Calls by other methods come to the application as well, by a task of Starlette's."""

    async def answer(request: Request) -> Response:
        call = Call(request.method.encode(), request.url.path.encode(), dict(request.headers.raw), monotonic())
        parked = asyncio.get_running_loop().create_future()
        answer = app.answer(call, lambda _, answer: parked.set_result(answer))
        return response_of(await parked if answer is None else answer)

    return starlette([Route("/{path:path}", answer, methods=["GET", "HEAD"])], {})


@contextlib.asynccontextmanager
async def port(
    app: Application, limits: Limits, cuts: list[str], context: ssl.SSLContext | None = None, **more: Any
) -> AsyncIterator[tuple[Server, int]]:
    """A server, without TLS where there is no ``context``, and its port. ``cuts`` gets the reasons for which connections were ended."""
    listener = listen("--listen", "127.0.0.1", 0)
    number = listener.getsockname()[1]
    server = Server(on_every_path(app), context, limits, cuts.append, **more)
    server.port = replace(server.port, applications=AnyPath(app), pages=Pages(on_every_path(app), 0, app.most))
    await server.start(listener)
    try:
        yield server, number
    finally:
        await server.stop(0)


def tls_contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's, for localhost."""
    ca = make_ca(datetime.now(UTC))
    pair = issue(ca, ["localhost"], datetime.now(UTC))
    (folder / "pair").write_bytes(pair.certificate_pem + pair.key_pem)
    (folder / "ca").write_bytes(ca.certificate_pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "pair")
    return server, ssl.create_default_context(cafile=str(folder / "ca"))


async def exchange(number: int, *pieces: bytes, pause: float = 0.02) -> bytes:
    """All that the server on this port says to bytes that come in pieces, until it ends the connection or the caller does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", number)
    try:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(pause)
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), PATIENCE)
    finally:
        writer.close()
