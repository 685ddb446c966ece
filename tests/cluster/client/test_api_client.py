"""Calls with raw JSON, and what becomes of those that fail."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import web

from certs.authority import KeyPair, issue, make_ca
from cluster.client import api_client as clients
from cluster.client.api_client import Access, Client, Garbled, Rejected, Unreachable
from tests.support.cluster.collecting_store import run
from tests.support.cluster.fake_api import kubeconfig, status
from tests.testcluster.calls import PATIENCE

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Its address."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield f"http{'s' if context else ''}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(access: Access) -> AsyncIterator[Client]:
    client = await Client.connect(access)
    try:
        yield client
    finally:
        await client.close()


def asked(handler: Handler, folder: Path, work: Callable[[Client], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        async with serving(handler) as server, connected(Access(str(kubeconfig(folder, server, "abc")))) as client:
            await work(client)

    run(all_of_it())


def test_a_call_sends_what_it_is_given(tmp_path: Path) -> None:
    """Method, path, query, token, types and body; the answer's JSON comes back."""

    async def handler(request: web.Request) -> web.Response:
        names = ("Authorization", "Accept", "Content-Type", "User-Agent")
        seen = {name: request.headers.get(name) for name in names}
        seen |= {"encoding": request.headers.get("Accept-Encoding"), "body": (await request.read()).decode()}
        return web.json_response({"asked": f"{request.method} {request.path_qs}", **seen})

    async def work(client: Client) -> None:
        reply = await client.call(
            "PATCH", "/apis/x/a%2Fb", body={"ä": 1}, content="application/merge-patch+json", query={"dryRun": "All", "x": "a b"}
        )
        assert reply.ok
        assert reply.body["asked"] == "PATCH /apis/x/a%2Fb?dryRun=All&x=a+b"
        assert (reply.body["body"], reply.body["Content-Type"]) == ('{"ä":1}', "application/merge-patch+json")
        assert (reply.body["Authorization"], reply.body["User-Agent"], reply.body["encoding"]) == ("Bearer abc", "berth", None)

    asked(handler, tmp_path, work)


def test_a_denial_is_returned_with_its_message(tmp_path: Path) -> None:
    """A Status' message, a text, Retry-After; never more than 500 characters."""
    answers = iter(
        [
            status(429, "m" * 9000, {"Retry-After": "7"}),
            web.Response(
                status=502,
                text="<html>bad gateway</html>",
                content_type="text/html",
                headers={"Retry-After": "Fri, 21 Nov 2026 10:00:00 GMT"},
            ),
            web.Response(status=302, headers={"Location": "http://127.0.0.1:1/elsewhere"}),
            web.Response(status=500),
        ]
    )

    async def handler(_request: web.Request) -> web.Response:
        return next(answers)

    async def work(client: Client) -> None:
        replies = [await client.call("GET", "/") for _ in range(4)]
        assert [one.status for one in replies] == [429, 502, 302, 500]
        assert [one.message for one in replies] == ["m" * 500, "<html>bad gateway</html>", "", ""]
        assert [one.retry_after for one in replies] == [7.0, None, None, None]
        assert not any(one.ok for one in replies)

    asked(handler, tmp_path, work)


@pytest.mark.parametrize("body", [b'{"a": ', b"<html>", b"\xff", b"[" * 5000, b"NaN"])
def test_a_success_that_is_no_json_is_told(body: bytes, tmp_path: Path) -> None:
    """The server was reached, so it is Garbled."""

    async def handler(_request: web.Request) -> web.Response:
        return web.Response(body=body)

    async def work(client: Client) -> None:
        with pytest.raises(Garbled, match="is not JSON"):
            await client.call("GET", "/")

    asked(handler, tmp_path, work)


def test_an_answer_that_never_ends_is_given_up(tmp_path: Path) -> None:
    """At 16 MiB of memory, also where they were compressed to less."""

    async def endless(request: web.Request) -> web.StreamResponse:
        if request.path == "/bomb":
            return web.Response(body=gzip.compress(b" " * (64 << 20)), headers={"Content-Encoding": "gzip"})
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65536)

    async def work(client: Client) -> None:
        for path in ("/", "/bomb"):
            with pytest.raises(Garbled, match="more than 16 MiB"):
                await client.call("GET", path, seconds=PATIENCE)

    asked(endless, tmp_path, work)


def test_what_takes_too_long_is_unreachable(tmp_path: Path) -> None:
    """A head that does not come, and a body that does not end."""

    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if request.path == "/body":
            await response.prepare(request)
            await response.write(b"{")
        await asyncio.sleep(20)
        return response

    async def work(client: Client) -> None:
        for path in ("/head", "/body"):
            with pytest.raises(Unreachable, match="does not answer in time"):
                await client.call("GET", path, seconds=0.2)

    asked(slow, tmp_path, work)


def test_a_server_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    """Nobody listens; and an answer that is cut off; and a client that is closed."""

    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        assert request.transport is not None
        request.transport.close()
        return response

    async def work(client: Client) -> None:
        with pytest.raises(Unreachable, match="can't be reached"):
            await client.call("GET", "/")
        await client.close()
        with pytest.raises(Unreachable):
            await client.call("GET", "/")
        async with connected(Access(str(kubeconfig(tmp_path, "http://127.0.0.1:1")))) as other:
            with pytest.raises(Unreachable, match=r"the API server at http://127.0.0.1:1 can't be reached: .*refused|Connect call failed"):
                await other.call("GET", "/")

    asked(cut, tmp_path, work)


def test_a_stream_gives_lines_or_the_denial(tmp_path: Path) -> None:
    """As they come; anything but 200 is raised."""

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path == "/no":
            return status(410, "expired")
        response = web.StreamResponse()
        await response.prepare(request)
        for part in (b"a\nb", b"c\n\nd\n"):
            await response.write(part)
            await asyncio.sleep(0.01)
        return response

    async def work(client: Client) -> None:
        async with client.stream("/", {}, 5) as lines:
            assert [one async for one in lines] == [b"a", b"bc", b"", b"d"]
        with pytest.raises(Rejected, match="GET /no: 410 expired") as raised:
            async with client.stream("/no", {}, 5):
                raise AssertionError("not entered")
        assert raised.value.reply.status == 410

    asked(handler, tmp_path, work)


class Door:
    """Lets one token in."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.tried: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.tried.append(request.headers.get("Authorization", ""))
        return web.json_response({}) if self.tried[-1] == f"Bearer {self.token}" else status(401, "Unauthorized")


def test_a_token_that_has_expired_is_read_again(tmp_path: Path) -> None:
    """Fifty calls at once that get a 401 read the file once, and each is repeated once."""

    async def work() -> None:
        door = Door("new")
        async with serving(door.answer) as server, connected(Access(str(kubeconfig(tmp_path, server, "old")))) as client:
            kubeconfig(tmp_path, server, "new")
            replies = await asyncio.gather(*(client.call("GET", "/") for _ in range(50)))
            assert all(one.ok for one in replies)
            assert len(door.tried) == 100

    run(work())


def test_a_token_that_stays_wrong_is_not_tried_again_and_again(tmp_path: Path) -> None:
    """A 401 is returned, after one reading that gave nothing new; a file that has gone is told of."""

    async def work() -> None:
        door = Door("new")
        async with serving(door.answer) as server:
            file = kubeconfig(tmp_path, server, "old")
            async with connected(Access(str(file))) as client:
                assert [(await client.call("GET", "/")).status for _ in range(2)] == [401, 401]
                assert len(door.tried) == 2
                file.unlink()
                await asyncio.sleep(clients.RENEWED)
                assert (await client.call("GET", "/")).status == 401
                assert "there is no kubeconfig" in client.access_error

    run(work())


def test_a_pods_token_is_read_again_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each minute, before it expires: no call ever gets a 401. A file that can't be read leaves the old one in use."""
    monkeypatch.setattr(clients, "TOKEN_AGAIN", 0.0)

    async def work() -> None:
        door = Door("one")
        async with in_pod(tmp_path, door) as client:
            assert (await client.call("GET", "/")).ok
            door.token = "two"
            (tmp_path / "token").write_text("two\n")
            assert (await client.call("GET", "/")).ok
            for text in ("", None):
                (tmp_path / "token").write_text(text) if text is not None else (tmp_path / "token").unlink()
                assert (await client.call("GET", "/")).ok
                assert "the old one is used" in client.access_error
            assert door.tried == ["Bearer one", *["Bearer two"] * 3]

    run(work())


def test_a_token_that_could_not_be_read_is_read_again_a_second_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is missing for a moment costs no minute with the old token."""
    now = 0.0
    monkeypatch.setattr(clients, "time", SimpleNamespace(monotonic=lambda: now))

    async def work() -> None:
        nonlocal now
        door = Door("old")
        async with in_pod(tmp_path, door) as client:
            (tmp_path / "token").unlink()
            now += clients.TOKEN_AGAIN
            assert (await client.call("GET", "/")).ok
            assert "the old one is used" in client.access_error
            (tmp_path / "token").write_text("new\n")
            door.token = "new"
            now += clients.RENEWED
            assert (await client.call("GET", "/")).ok
            assert (door.tried, client.access_error) == (["Bearer old", "Bearer new"], "")

    run(work())


def test_certificates_that_were_replaced_are_read_again(tmp_path: Path) -> None:
    """The server has one of another authority: the call fails, the next one knows it; what is under way on old connections goes on."""

    async def work() -> None:
        door, now = Door("abc"), datetime.now(UTC)
        old, new = make_ca(now), make_ca(now)
        (tmp_path / "ca.crt").write_bytes(old.certificate_pem)
        async with (
            serving(endless, context_of(tmp_path, issue(old, ["127.0.0.1"], now))) as first,
            serving(door.answer, context_of(tmp_path, issue(new, ["127.0.0.1"], now))) as second,
            connected(Access(str(kubeconfig(tmp_path, first, "abc", tmp_path / "ca.crt")))) as client,
            client.stream("/", {}, 20) as lines,
        ):
            assert await lines.batch() == [b"one"]
            kubeconfig(tmp_path, second, "abc", tmp_path / "ca.crt")
            await client._load()  # as after a 401
            with pytest.raises(Unreachable, match="certificate"):
                await client.call("GET", "/")
            (tmp_path / "ca.crt").write_bytes(new.certificate_pem)
            await asyncio.sleep(clients.RENEWED)
            with pytest.raises(Unreachable, match="certificate"):
                await client.call("GET", "/")
            assert (await client.call("GET", "/")).ok
            assert await lines.batch() == [b"two"]

    run(work())


@asynccontextmanager
async def in_pod(folder: Path, door: Door) -> AsyncIterator[Client]:
    """A client with the service account of a pod, whose token is the door's."""
    now = datetime.now(UTC)
    ca = make_ca(now)
    async with serving(door.answer, context_of(folder, issue(ca, ["127.0.0.1"], now))) as server:
        (folder / "token").write_text(f"{door.token}\n")
        (folder / "ca.crt").write_bytes(ca.certificate_pem)
        environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": server.rpartition(":")[2]}
        async with connected(Access(None, mounted=folder, environment=environment)) as client:
            yield client


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"one\n")
    await asyncio.sleep(2.5)
    await response.write(b"two\n")
    return response


def context_of(folder: Path, pair: KeyPair) -> ssl.SSLContext:
    """Of a server."""
    (folder / "served.pem").write_bytes(pair.certificate_pem + pair.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "served.pem")
    return context
