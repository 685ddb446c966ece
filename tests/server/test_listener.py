"""A socket that listens, room for connections, and how they end with the server."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from server import places
from server.http import Answer, Call, Later, Rejection, text_answer
from server.limits import Limits
from server.listener import MORE_FILES, StartError, listen, make_room
from server.places import OPEN, SHAKING, SILENT, Holder
from server.server import Server
from tests.support.calls.in_process import StandIn, exchange, port, run, tls_contexts
from tests.support.calls.server_process import ROOT


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
        "import resource as r; from server.listener import make_room; hard = r.getrlimit(r.RLIMIT_NOFILE)[1];"
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


class Nothing(StandIn):
    """Answers every call with its path."""

    room = most = 1000

    def begin(self, call: Call) -> Rejection | None:
        return None

    def answer(self, call: Call, later: Later) -> Answer:
        return text_answer(200, call.path.decode())

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
            while not list(server.port.places):
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
    """All places are taken by callers that ask, and those beside them too: the oldest of these goes, for the newest is about to ask."""
    monkeypatch.setattr(places, "TURNED_AWAY", 2)
    cuts: list[str] = []

    async def crowd() -> list[bytes]:
        async with port(Nothing(), Limits(connections=3), cuts) as (_, number):
            held = [await asyncio.open_connection("127.0.0.1", number) for _ in range(3)]
            for reader, writer in held:
                writer.write(GET + GET[:9])
                await reader.readuntil(b"/a\n")
            more = [await asyncio.open_connection("127.0.0.1", number) for _ in range(4)]
            heard = []
            for reader, writer in more:
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


def test_a_probe_is_answered_where_there_is_no_place() -> None:
    """Once, on a connection that ends; whoever asks for another page is told to come back. So no reader of metrics ends the process."""
    cuts: list[str] = []

    async def crowd() -> list[bytes]:
        async with port(Nothing(), Limits(connections=2), cuts, always=frozenset({b"/livez"})) as (_, number):
            held = [await asyncio.open_connection("127.0.0.1", number) for _ in range(2)]
            for reader, writer in held:
                writer.write(GET + GET[:9])
                await reader.readuntil(b"/a\n")
            heard = [await exchange(number, GET.replace(b"/a", path)) for path in (b"/livez", b"/a", b"/livez")]
            for _, writer in held:
                writer.close()
            return heard

    heard = run(crowd())
    assert [answer[:13] for answer in heard] == [b"HTTP/1.1 200 ", b"HTTP/1.1 503 ", b"HTTP/1.1 200 "]
    assert all(b"\r\nconnection: close\r\n" in answer for answer in heard)
    assert cuts == ["crowded"]


class Dialling:
    """Callers that come as far as they are told and stay there, one after the other."""

    def __init__(self, server: Server, number: int, client: ssl.SSLContext) -> None:
        self._server, self._number, self._client = server, number, client
        self.all: list[socket.socket] = []
        self._known: list[Holder] = []

    async def dial(self, stage: int) -> None:
        """The server has seen it so far when this returns."""
        raw = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", self._number))
        self.all.append(raw)
        if stage == SHAKING:
            raw.sendall(b"\x16")
        if stage == OPEN:
            self.all[-1] = await asyncio.to_thread(self._client.wrap_socket, raw, server_hostname="localhost")
        while (newest := next(reversed(self._server.port.places.unproven[stage]), None)) is None or newest in self._known:
            await asyncio.sleep(0.01)
        self._known.append(newest)

    async def ended(self) -> list[int]:
        """Which of them the server has ended, by their order."""
        return [index for index, each in enumerate(self.all) if await asyncio.to_thread(_is_ended, each)]

    def close(self) -> None:
        for each in self.all:
            each.close()


def _is_ended(connection: socket.socket) -> bool:
    connection.settimeout(0.05)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


S, H, K = SILENT, SHAKING, OPEN


@pytest.mark.parametrize(
    ("connections", "stages", "gone"),
    [
        pytest.param(5, [K, H, S, S, H, S, S], [2, 3], id="the-silent-first"),
        pytest.param(4, [K, H, K, H, H, H], [1, 3], id="then-those-that-shake-hands"),
        pytest.param(3, [K, K, K, K, S], [0, 1], id="then-the-oldest"),
        pytest.param(16, [K] * 16 + [S, S], [0, 1], id="but-a-few-may-be-dialling"),
    ],
)
def test_who_came_least_far_makes_room(connections: int, stages: list[int], gone: list[int], tmp_path: Path) -> None:
    """What costs its sender nothing pushes out no caller that does more, and those who hold all places do not push out who dials."""
    context, client = tls_contexts(tmp_path)

    async def crowd() -> list[int]:
        async with port(Nothing(), Limits(connections=connections), [], context) as (server, number):
            callers = Dialling(server, number, client)
            try:
                for stage in stages:
                    await callers.dial(stage)
                return await callers.ended()
            finally:
                callers.close()

    assert run(crowd()) == gone


def test_the_kernel_holds_little_for_a_caller_that_never_reads() -> None:
    """What it holds counts as the process's own in a container."""
    sent = 0

    async def deafen() -> None:
        nonlocal sent
        async with port(Nothing(), Limits(), []) as (_, number):
            with socket.socket() as raw:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
                raw.connect(("127.0.0.1", number))
                raw.setblocking(False)  # noqa: FBT003 - it takes no keyword
                quiet = 0
                while quiet < 20:
                    try:
                        sent += raw.send((GET * 100)[sent % len(GET) :])
                        quiet = 0
                    except BlockingIOError:
                        quiet += 1
                        await asyncio.sleep(0.02)

    run(deafen())
    assert sent < 2**20
