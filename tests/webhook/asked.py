"""One call of an application in this process, and one server of a port in it: what is asked goes through no process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import uvloop

from certs.authority import issue, make_ca
from tests.patience import PATIENCE
from webhook.http import Application, Call
from webhook.limits import Limits
from webhook.servers import Server, listen

T = TypeVar("T")
JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An answer as it goes out, taken apart again."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(app: Application, path: str, body: bytes = b"", headers: Mapping[str, str] = JSON, method: str = "POST") -> Told:
    """One call that is in whole."""
    read = {name.encode(): value.encode() for name, value in headers.items()}
    answer = app.answer(Call(method.encode(), path.encode(), read, monotonic(), body, len(body)))
    return told(answer.encoded(close=answer.close))


def told(wire: bytes) -> Told:
    """An answer off the wire."""
    head, _, body = wire.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert headers["content-length"] == str(len(body))
    return Told(status=int(first.split()[1]), headers=headers, body=body)


def run(work: Coroutine[Any, Any, T]) -> T:
    """On the event loop that serves."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


@contextlib.asynccontextmanager
async def port(
    app: Application, limits: Limits, cuts: list[str], context: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Server, int]]:
    """A server, without TLS where there is no ``context``, and its port. ``cuts`` gets the reasons for which connections were ended."""
    listener = listen("--listen", "127.0.0.1", 0)
    server = Server(app, context, limits, cuts.append)
    await server.start(listener)
    try:
        yield server, listener.getsockname()[1]
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
