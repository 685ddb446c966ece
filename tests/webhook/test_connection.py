"""Callers that are slow, idle, too many or never stop their headers: cut, counted, and harmless to the others."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette

from tests.webhook.server import ROOT, Running, serving, until
from webhook.limits import Limits
from webhook.servers import Server

REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()
HEAD = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(REVIEW)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that waits one second for a request and has room for a hundred connections."""
    folder = tmp_path_factory.mktemp("server")
    with serving(folder, "--request-deadline", "1", "--connections", "100", "--platforms", "karpenter-aws") as it:
        yield it


@contextlib.contextmanager
def dialled(server: Running) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context(cafile=str(server.ca))
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=30) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as tls,
    ):
        yield tls


def wait_for_the_end(connection: socket.socket) -> None:
    """Returns once the server has ended the connection; what it says before is read. Raises TimeoutError where it never does."""
    with contextlib.suppress(ssl.SSLEOFError, ConnectionResetError):
        while connection.recv(65536):
            pass


def cuts(server: Running, reason: str) -> float:
    line = f'berth_connections_cut_total{{reason="{reason}"}} '
    text = server.health("/metrics").body.decode()
    return float(text.partition(line)[2].partition("\n")[0])


@pytest.mark.parametrize("begun", [b"POST /mutate HT", HEAD[:60], HEAD + REVIEW[:500]], ids=["request-line", "head", "body"])
def test_a_request_that_does_not_end_is_cut(begun: bytes, server: Running) -> None:
    """After the deadline, wherever it stopped; others are answered meanwhile."""
    before = cuts(server, "slow")
    with dialled(server) as connection:
        connection.sendall(begun)
        assert server.post("/mutate", REVIEW).status == 200
        wait_for_the_end(connection)
    assert cuts(server, "slow") == before + 1


def test_a_request_in_pieces_is_answered(server: Running) -> None:
    """Within the deadline it does not matter how the bytes come, and the deadline is gone afterwards."""
    with dialled(server) as connection:
        for _ in range(2):
            for piece in (HEAD[:7], HEAD[7:], REVIEW[:100], REVIEW[100:]):
                connection.sendall(piece)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")
            until(lambda: answered_whole(connection), "the rest")


def answered_whole(connection: ssl.SSLSocket) -> bool:
    """Takes what is left of an answer off the connection."""
    connection.settimeout(0.2)
    try:
        connection.recv(65536)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(30)
    return False


def test_a_head_without_end_is_cut(server: Running) -> None:
    """Past 64 KiB of headers, before the deadline."""
    before = cuts(server, "head")
    with dialled(server) as connection, contextlib.suppress(ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
        connection.sendall(b"POST /mutate HTTP/1.1\r\n")
        for _ in range(40):
            connection.sendall(b"X-Flood: " + b"y" * 4000 + b"\r\n")
        wait_for_the_end(connection)
    until(lambda: cuts(server, "head") == before + 1, "the cut")


def test_too_many_connections_are_told_to_come_back(server: Running) -> None:
    """The hundred that are open stay; the next is answered 503 with Retry-After and closed; a place that is free is given."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(dialled(server)) for _ in range(100)]
        with dialled(server) as refused:
            said = refused.recv(65536)
        assert said.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1\r\nconnection: close\r\n" in said
        held[0].sendall(HEAD + REVIEW)
        assert held[0].recv(65536).startswith(b"HTTP/1.1 200 OK")
    until(lambda: server.post("/mutate", REVIEW).status == 200, "a free place")
    assert cuts(server, "crowded") >= 1


def test_empty_lines_are_no_request(server: Running) -> None:
    """They are skipped, and a request after them is answered."""
    with dialled(server) as connection:
        connection.sendall(b"\r\n")
        connection.sendall(b"\r\n" + HEAD + REVIEW)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_what_is_not_http_is_turned_away(server: Running) -> None:
    """400 or a closed connection, and the server goes on."""
    with dialled(server) as connection:
        connection.sendall(b"\x16\x03\x01\x00\x05hello\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert server.post("/mutate", REVIEW).status == 200
    assert [event["event"] for event in server.events()].count("library") == 0


def test_an_idle_connection_is_ended_and_counted() -> None:
    """One that never asked, and one that did and then fell silent, after the time that they are kept."""
    cuts: list[str] = []

    async def serve() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        server = Server(Starlette(), None, Limits(keep_alive=1), cuts.append)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await asyncio.gather(*(asyncio.to_thread(fall_silent, listener.getsockname()[1], asks=asks) for asks in (True, False)))
        server.should_exit = True
        await task

    asyncio.run(serve())
    assert cuts == ["idle", "idle"]


def fall_silent(port: int, *, asks: bool) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        if asks:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for_the_end(client)
