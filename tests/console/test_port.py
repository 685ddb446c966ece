"""The port of the console: pages read whole forms and all headers, within bounds, and its certificate follows its files."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from certs.following import FollowedFiles, SelfSigned
from console.serve import LIMITS, Certificate
from console.server.query import MOST_FORM
from server.listener import listen
from server.server import Server
from tests.testcluster.calls import PATIENCE


async def page(request: Request) -> Response:
    """Say what arrived."""
    body, client = await request.body(), request.client
    return JSONResponse(
        {
            "method": request.method,
            "path": request.url.path,
            "query": request.url.query,
            "cookie": request.cookies.get("session"),
            "token": len(request.headers.get("authorization", "")),
            "scheme": request.url.scheme,
            "client": client.host if client else None,
            "bytes": len(body),
        },
        headers={"set-cookie": "a=1"},
    )


async def broken(request: Request) -> Response:
    """Fail as a page with a mistake does."""
    raise LookupError("a mistake")


async def pieces(request: Request) -> Response:
    """Answer in two pieces."""
    return StreamingResponse(iter([b"one ", b"two"]))


async def injecting(request: Request) -> Response:
    """Answer with a header that a caller chose."""
    return Response("good", headers={"location": request.query_params["to"]})


async def unchanged(request: Request) -> Response:
    """Answer a conditional request."""
    return Response(status_code=304)


def heard(*requests: bytes) -> bytes:
    """Return all that the port says to these requests, each sent after the answer to the one before."""

    async def talk() -> bytes:
        listener = listen("--listen", "127.0.0.1", 0)
        methods = {"/form": page, "/broken": broken, "/pieces": pieces, "/unchanged": unchanged, "/injecting": injecting}
        app = Starlette(routes=[Route(path, answer, methods=["GET", "POST"]) for path, answer in methods.items()])
        server, number = Server(app, None, LIMITS, lambda _: None, form=MOST_FORM), listener.getsockname()[1]
        await server.start(listener)
        reader, writer = await asyncio.open_connection("127.0.0.1", number)
        answers = b""
        for sent in requests:
            writer.write(sent)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
            length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
            answers += head + await reader.readexactly(length)
        writer.close()
        await server.stop(1)
        return answers

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(talk())


def form(body: bytes, *headers: str) -> bytes:
    lines = "".join(f"{line}\r\n" for line in headers)
    return f"POST /form?a=b%20c HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_a_page_reads_the_whole_form_and_all_headers() -> None:
    """The largest form, a cookie, a token of 16 KiB, the query and the caller's address; the answer's headers arrive."""
    told = heard(form(b"x" * MOST_FORM, "Cookie: session=s", f"Authorization: Bearer {'t' * 2**14}"), form(b"", "Cookie: b=c"))
    first, second = (answer.partition(b"\r\n\r\n") for answer in told.split(b"HTTP/1.1 200 OK\r\n")[1:])
    assert b"set-cookie: a=1" in first[0]
    assert first[2] == (
        b'{"method":"POST","path":"/form","query":"a=b%20c","cookie":"s","token":16391,"scheme":"http","client":"127.0.0.1","bytes":262144}'
    )
    assert b'"cookie":null' in second[2]


def test_a_form_that_is_too_large_is_413() -> None:
    """Whether its length is told or not."""
    assert heard(form(b"x" * (MOST_FORM + 1))).startswith(b"HTTP/1.1 413 ")
    chunk = b"4000\r\n" + b"x" * 2**14 + b"\r\n"
    assert heard(b"POST /form HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 17).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"GET /pieces HTTP/1.1\r\nHost: x\r\n\r\n", b"content-length: 7\r\n\r\none two"),
        (b"GET /broken HTTP/1.1\r\nHost: x\r\n\r\n", b"Internal Server Error"),
        (b"GET /injecting?to=%0d%0aset-cookie:a HTTP/1.1\r\nHost: x\r\n\r\n", b"Internal Server Error"),
        (b"GET /unchanged HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\n\r\n"),
        (b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", b"Not Found"),
    ],
)
def test_every_answer_of_starlette_arrives(sent: bytes, answer: bytes) -> None:
    """In one piece with its length; a page with a mistake, or with a header that breaks the line, is 500; one that did not change
    has no body."""
    assert answer in heard(sent)


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
