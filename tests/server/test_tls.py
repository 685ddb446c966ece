"""TLS over real sockets: what goes through it, how it ends, and what is left of it."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import socket
import ssl
from contextlib import AbstractAsyncContextManager

import pytest

from server.connection import Connection
from server.http import Answer, Call, Later, Rejection, text_answer
from server.limits import Limits
from server.server import Server
from tests.support.calls.in_process import StandIn, port, read_answer, run, tls_contexts
from tests.testcluster.calls import PATIENCE

REQUEST = b"POST /%d HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


class Doubling(StandIn):
    """Answers with the body twice."""

    room = 10**7
    most = 10**7

    def begin(self, call: Call) -> Rejection | None:
        return None

    def answer(self, call: Call, later: Later) -> Answer:
        return text_answer(200, (call.body * 2).decode())

    def lost(self, call: Call) -> None:
        pass


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The server's and a client's."""
    return tls_contexts(tmp_path_factory.mktemp("tls"))


def secured(context: ssl.SSLContext, cuts: list[str]) -> AbstractAsyncContextManager[tuple[Server, int]]:
    return port(Doubling(), Limits(handshake=1), cuts, context)


def call(number: int, client: ssl.SSLContext, *sizes: int) -> list[int]:
    """The lengths of the answers to calls with bodies of these lengths, on one connection."""
    found = []
    with (
        socket.create_connection(("127.0.0.1", number), timeout=PATIENCE) as raw,
        client.wrap_socket(raw, server_hostname="localhost") as tls,
    ):
        for size in sizes:
            tls.sendall(REQUEST % (size, size) + b"x" * size)
            reader = tls.makefile("rb")
            while (line := reader.readline()) != b"\r\n":
                if line.startswith(b"content-length: "):
                    length = int(line[16:])
            found.append(len(reader.read(length)) - 1)
    return found


def test_bodies_and_answers_of_any_length_go_through(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """Around the length of a record, and of many; on one connection."""
    sizes = (0, 1, 16_000, 16_384, 16_385, 40_000, 65_536, 300_000, 3_000_000, 5)

    async def call_on() -> list[int]:
        async with secured(contexts[0], []) as (_, number):
            return await asyncio.to_thread(call, number, contexts[1], *sizes)

    assert run(call_on()) == [2 * size for size in sizes]


def test_a_handshake_that_fails_is_counted(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """Garbage, a caller that leaves in the middle, one that says nothing for too long; not one that only looks whether the port is open."""
    cuts: list[str] = []

    def fail(number: int) -> None:
        with socket.create_connection(("127.0.0.1", number), timeout=PATIENCE):
            pass
        for begun in (b"GET / HTTP/1.1\r\n\r\n", b""):
            with socket.create_connection(("127.0.0.1", number), timeout=PATIENCE) as raw, contextlib.suppress(ConnectionResetError):
                raw.sendall(begun)
                while raw.recv(1000):
                    pass
        with socket.create_connection(("127.0.0.1", number), timeout=PATIENCE) as raw:
            raw.sendall(b"\x16\x03\x01\x02\x00\x01")

    async def count() -> None:
        async with secured(contexts[0], cuts) as (_, number):
            await asyncio.to_thread(fail, number)
            while len(cuts) < 3:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)

    run(count())
    assert cuts == ["handshake"] * 3


def test_a_connection_that_is_gone_leaves_nothing_to_the_garbage_collector(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """Which then never has much to look at: it is freed with its last reference."""

    async def come_and_go() -> None:
        async with secured(contexts[0], []) as (server, number):
            calling = asyncio.create_task(asyncio.to_thread(call, number, contexts[1], *[100] * 200))
            while not list(server.port.places):
                await asyncio.sleep(0)
            await calling
            while list(server.port.places):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)
            assert not [found for found in gc.get_objects() if isinstance(found, Connection)]

    gc.disable()
    try:
        run(come_and_go())
    finally:
        gc.enable()


def test_a_caller_may_change_its_key(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """And is answered after it. (That it may do so without end: docs/protocol.md.)"""

    def change(number: int) -> bytes:
        with (
            socket.create_connection(("127.0.0.1", number), timeout=PATIENCE) as raw,
            contexts[1].wrap_socket(raw, server_hostname="localhost") as tls,
        ):
            change_keys(tls, 3)
            tls.sendall(REQUEST % (1, 3) + b"abc")
            return read_answer(tls).body

    async def serve() -> bytes:
        async with secured(contexts[0], []) as (_, number):
            return await asyncio.to_thread(change, number)

    assert run(serve()) == b"abcabc\n"


def change_keys(tls: ssl.SSLSocket, times: int) -> None:
    """By OpenSSL itself, for Python has no name for it: its ``SSL`` is the second pointer of Python's object."""
    library = ctypes.CDLL(pytest.importorskip("_ssl").__file__)
    inner = id(getattr(tls, "_sslobj"))  # noqa: B009 - typeshed does not know it
    connection = ctypes.c_void_p.from_address(inner + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p))
    for _ in range(times):
        if library.SSL_key_update(connection, 1) != 1 or library.SSL_do_handshake(connection) != 1:
            raise ConnectionError("ended")


def dial_in_vain(number: int, client: ssl.SSLContext) -> None:
    with (
        socket.create_connection(("127.0.0.1", number), timeout=PATIENCE) as raw,
        contextlib.suppress(OSError),
        client.wrap_socket(raw, server_hostname="localhost") as tls,
    ):
        assert tls.recv(1) == b""


def test_a_mistake_in_one_handshake_stops_no_other(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with its connection, and those that wait behind it go on."""
    first = True
    reached = Connection.connection_made

    def stumble(connection: Connection, transport: asyncio.Transport) -> None:
        nonlocal first
        if first:
            first = False
            raise AssertionError("a mistake")
        reached(connection, transport)

    monkeypatch.setattr(Connection, "connection_made", stumble)

    async def serve() -> list[int]:
        asyncio.get_running_loop().set_exception_handler(lambda loop, found: None)
        async with secured(contexts[0], []) as (_, number):
            await asyncio.to_thread(dial_in_vain, number, contexts[1])
            return await asyncio.wait_for(asyncio.to_thread(call, number, contexts[1], 100), PATIENCE)

    assert run(serve()) == [200]
