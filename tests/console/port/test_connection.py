"""What a caller of the console's port may cost: slow and large requests end, and one too many takes the place of the idlest."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from certs.following import FollowedFiles, SelfSigned
from console.port import connection
from console.port.certificate import Certificate
from console.port.server import Server
from server.listener import listen
from tests.testcluster.calls import PATIENCE

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def page(request: Request) -> Response:
    return PlainTextResponse(f"{len(await request.body())} bytes\n")


@asynccontextmanager
async def serving(context: ssl.SSLContext | None = None) -> AsyncIterator[Callable[[], Awaitable[Streams]]]:
    """A server; what opens a connection to it."""
    listener = listen("--listen", "127.0.0.1", 0)
    server = Server(Starlette(routes=[Route("/", page, methods=["GET", "POST"])]), context)
    task, port, made = asyncio.create_task(server.serve([listener])), listener.getsockname()[1], list[asyncio.StreamWriter]()

    async def dialled() -> Streams:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        made.append(writer)
        return reader, writer

    try:
        yield dialled
    finally:
        for one in made:
            one.close()
        server.should_exit = True
        await asyncio.wait_for(task, PATIENCE)


def run(work: Callable[[Callable[[], Awaitable[Streams]]], Awaitable[None]]) -> None:
    async def served() -> None:
        async with serving() as dialled:
            await asyncio.wait_for(work(dialled), PATIENCE)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(served())


async def told(reader: asyncio.StreamReader) -> bytes:
    """All until the end of the connection, however it ends."""
    try:
        return await reader.read(-1)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"\r\n", b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc"])
def test_a_request_that_does_not_come_ends(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """Of which nothing, a part of the head, or a part of the body has arrived; and so does one after a good one."""
    monkeypatch.setattr(connection, "ARRIVES", 0.2)

    async def work(dialled: Callable[[], Awaitable[Streams]]) -> None:
        for before in (b"", GET):
            reader, writer = await dialled()
            if before and not sent:
                continue
            writer.write(before)
            if before:
                assert (await reader.readuntil(b"bytes\n")).startswith(b"HTTP/1.1 200 ")
            writer.write(sent)
            assert not (await told(reader)).startswith(b"HTTP/1.1 200 ")

    run(work)


def test_a_large_head_ends() -> None:
    """With 431, before it is complete; one of 16 KiB, which holds the largest token, is answered."""

    async def work(dialled: Callable[[], Awaitable[Streams]]) -> None:
        reader, writer = await dialled()
        writer.write(GET[:-2] + b"authorization: Bearer " + b"x" * 2**14 + b"\r\n\r\n")
        assert (await reader.readuntil(b"bytes\n")).startswith(b"HTTP/1.1 200 ")
        writer.write(GET[:-2] + b"x: " + b"x" * (connection.HEAD + 1))
        assert (await told(reader)).startswith(b"HTTP/1.1 431 ")

    run(work)


def test_many_requests_on_one_connection_are_one_after_another() -> None:
    """None is limited by what those before it were; one that does not wait for its answer ends the connection."""

    async def work(dialled: Callable[[], Awaitable[Streams]]) -> None:
        reader, writer = await dialled()
        for _ in range(50):
            writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5000\r\n\r\n" + b"x" * 5000)
            assert (await reader.readuntil(b"bytes\n")).endswith(b"5000 bytes\n")
        writer.write(GET * 1000)
        assert (await told(reader)).count(b"200 OK") <= 1

    run(work)


def test_one_too_many_takes_the_place_of_the_idlest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who hold connections open without a word keep nobody out."""
    monkeypatch.setattr(connection, "MOST_CONNECTIONS", 3)

    async def work(dialled: Callable[[], Awaitable[Streams]]) -> None:
        silent = [await dialled() for _ in range(3)]
        for _ in range(3):
            reader, writer = await dialled()
            writer.write(GET)
            assert (await reader.readuntil(b"bytes\n")).startswith(b"HTTP/1.1 200 ")
        for reader, _ in silent:
            assert await told(reader) == b""

    run(work)


def test_the_certificate_follows_its_files(tmp_path: Path) -> None:
    """A new pair is served from the next handshake on; one that is wrong is not, and the last good one is."""

    async def work() -> None:
        first = SelfSigned(tmp_path / "a", ("localhost",))
        first.refresh(datetime.now(UTC))
        files = tmp_path / "tls.crt", tmp_path / "tls.key"

        def put(source: SelfSigned) -> bytes:
            source.refresh(datetime.now(UTC))
            assert source._leaf is not None
            files[0].write_bytes(source._leaf.certificate_pem)
            files[1].write_bytes(source._leaf.key_pem)
            return source._leaf.certificate_pem

        put(first)
        certificate = Certificate(FollowedFiles(*files))
        before = certificate._live.serving.serial
        put(SelfSigned(tmp_path / "b", ("localhost",)))
        await certificate.look()
        after = certificate._live.serving.serial
        files[0].write_text("no certificate")
        for _ in range(3):
            await certificate.look()
        assert (after != before, certificate._live.serving.serial) == (True, after)

    asyncio.run(work())
