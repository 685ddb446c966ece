"""A socket that listens, room for connections, and how they end with the server."""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys

import pytest

from tests.webhook.asked import port, run
from tests.webhook.server import ROOT
from webhook import servers
from webhook.http import Answer, Call, Refusal, said
from webhook.limits import Limits
from webhook.servers import MORE_FILES, StartError, listen, make_room


def test_a_free_port_is_taken() -> None:
    """Port 0 is any."""
    with listen("--listen", "127.0.0.1", 0) as listener:
        assert listener.getsockname()[1] > 0


@pytest.mark.parametrize("option", ["--listen", "--health"])
def test_a_port_in_use_names_the_flag(option: str) -> None:
    """What to type is the flag that was wrong."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"Address already in use; give another {option} HOST:PORT"):
            listen(option, "127.0.0.1", port)


def test_room_is_made_where_the_system_allows_it() -> None:
    """The soft limit is raised as far as it goes, in a process of its own: connections that are turned away need files too."""
    code = (
        "import resource as r; from webhook.servers import make_room; hard = r.getrlimit(r.RLIMIT_NOFILE)[1];"
        "r.setrlimit(r.RLIMIT_NOFILE, (256, hard)); make_room(500); print(r.getrlimit(r.RLIMIT_NOFILE)[0] == hard)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_room_that_the_system_does_not_give_is_an_error() -> None:
    """It says how many there can be."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        pytest.skip("no limit here")
    with pytest.raises(StartError, match=f"give --connections {hard - MORE_FILES}, or raise the limit"):
        make_room(hard)


class Nothing:
    """Answers every call with its path."""

    room = most = 1000

    def begin(self, call: Call) -> Refusal | None:
        return None

    def answer(self, call: Call) -> Answer:
        return said(200, call.path.decode())

    def lost(self, call: Call) -> None:
        pass


GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"


def test_a_call_that_crosses_the_end_is_told_to_come_back() -> None:
    """Sent on a kept connection after the server has ended it, which no caller can know: it finds an answer, not the end alone."""

    async def cross() -> bytes:
        async with port(Nothing(), Limits(), []) as (server, number):
            reader, writer = await asyncio.open_connection("127.0.0.1", number)
            writer.write(GET)
            assert (await reader.readuntil(b"/a\n")).startswith(b"HTTP/1.1 200 ")
            stopping = asyncio.create_task(server.stop(30))
            await asyncio.sleep(0.2)
            writer.write(GET)
            heard = await reader.read()
            writer.close()
            await stopping
            return heard

    heard = run(cross())
    assert heard.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nretry-after: 1\r\nconnection: close\r\n" in heard


def test_who_has_just_dialled_may_still_call() -> None:
    """It dialled to call: it is answered, once."""

    async def call_late() -> bytes:
        async with port(Nothing(), Limits(), []) as (server, number):
            reader, writer = await asyncio.open_connection("127.0.0.1", number)
            while not server._connections:
                await asyncio.sleep(0.01)
            stopping = asyncio.create_task(server.stop(30))
            await asyncio.sleep(0.1)
            writer.write(GET + GET)
            heard = await reader.read()
            writer.close()
            await stopping
            return heard

    heard = run(call_late())
    assert heard.startswith(b"HTTP/1.1 200 OK\r\n")
    assert heard.count(b"HTTP/1.1") == 1
    assert b"\r\nconnection: close\r\n" in heard


def test_more_than_can_be_told_to_come_back_end_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """All places are taken by callers that have asked, and those beside them too."""
    monkeypatch.setattr(servers, "TURNED_AWAY", 2)
    cuts: list[str] = []

    async def crowd() -> list[bytes]:
        async with port(Nothing(), Limits(connections=3), cuts) as (_, number):
            held = [await asyncio.open_connection("127.0.0.1", number) for _ in range(3)]
            for reader, writer in held:
                writer.write(GET)
                await reader.readuntil(b"/a\n")
            more = [await asyncio.open_connection("127.0.0.1", number) for _ in range(4)]
            heard = []
            for reader, writer in reversed(more):
                try:
                    writer.write(GET)
                    heard.append((await reader.read())[:12])
                except ConnectionError:
                    heard.append(b"")
            for _, writer in (*held, *more):
                writer.close()
            return heard

    assert run(crowd()) == [b"", b"", b"HTTP/1.1 503", b"HTTP/1.1 503"]
    assert cuts == ["crowded"] * 4
