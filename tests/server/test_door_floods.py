"""Callers that send more than anybody needs (reliability.md E7, E10, E11): told so and cut, and the memory stays where it was."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from pathlib import Path

import pytest

from server.limits import Limits
from tests.support.calls.process_usage import MIB, growth, open_files
from tests.support.calls.raw_tls import Wire, chunk, dialled, head, post
from tests.support.calls.server_process import LIBRARY, ROOT, Running, serving, until
from tests.support.counts import count

REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()
CAP = Limits().body
SPARE = 10 * MIB
"""What a flood may cost beside the body cap: reliability.md E7."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that has judged before: what is loaded once is loaded. No connection of a flood is left open in it."""
    with serving(tmp_path_factory.mktemp("server"), "--policies", LIBRARY, "--request-deadline", "5") as it:
        assert it.post("/mutate", REVIEW).status == 200
        files = open_files(it)
        yield it
        until(lambda: open_files(it) <= files, "the end of every flood's connection")
        assert it.events("failed") == []
        assert b"Traceback" not in it.log.read_bytes()


@pytest.fixture
def wire(server: Running) -> Iterator[Wire]:
    """A connection for the flood. Afterwards the server lives and judges on another one."""
    with dialled(server) as it:
        yield it
    assert server.post("/mutate", REVIEW).status == 200


def flood(wire: Wire, pieces: Iterable[bytes]) -> None:
    """Send them one after the other until the server ends the connection."""
    for piece in pieces:
        if not wire.send(piece):
            return


def statuses(wire: Wire) -> list[int]:
    """Of all answers until the end. A connection that is cut with bytes on their way may lose the answer: then there is none."""
    return [reply.status for reply in wire.replies()]


CHUNKED = head(None, Transfer_Encoding="chunked")
BLOCK = b" " * 2**16
HEADER_FLOODS: dict[str, Callable[[], Iterable[bytes]]] = {
    "one-header-without-end": lambda: [b"POST /mutate HTTP/1.1\r\nX-A: ", *repeat(b"y" * 4096, 512)],
    "one-name-without-end": lambda: [b"POST /mutate HTTP/1.1\r\n", *repeat(b"y" * 4096, 512)],
    "one-path-without-end": lambda: [b"POST /", *repeat(b"y" * 4096, 512)],
    "a-query-without-end": lambda: [b"POST /mutate?", *repeat(b"y" * 4096, 512)],
    "a-method-without-end": lambda: repeat(b"P" * 4096, 512),
    "a-hundred-thousand-headers": lambda: [b"POST /mutate HTTP/1.1\r\n", *repeat(b"X-A: 1\r\n" * 1000, 100)],
    "the-same-at-once": lambda: [b"POST /mutate HTTP/1.1\r\n" + b"X-A: 1\r\n" * 100_000 + b"\r\n"],
    "one-header-of-a-mebibyte": lambda: [head(2).replace(b"\r\n\r\n", b"\r\nX-A: " + b"y" * MIB + b"\r\n\r\n") + b"{}"],
    "a-trailer-without-end": lambda: [CHUNKED, chunk(b"{}"), b"0\r\n", *repeat(b"X-A: 1\r\n" * 500, 512)],
    "a-trailer-value-without-end": lambda: [CHUNKED, chunk(b"{}"), b"0\r\nX-A: ", *repeat(b"y" * 4096, 512)],
    "a-chunk-extension-without-end": lambda: [CHUNKED, b"2;a=", *repeat(b"y" * 4096, 4096)],
    "an-extension-for-each-chunk": lambda: [CHUNKED, *repeat(b"1;" + b"y" * 4096 + b"\r\n \r\n", 4096)],
}


@pytest.mark.parametrize("pieces", HEADER_FLOODS.values(), ids=HEADER_FLOODS)
def test_a_head_without_end_is_cut(pieces: Callable[[], Iterable[bytes]], server: Running, wire: Wire) -> None:
    """Long before it is in: 400, 413 or 431, or none where the caller was not listening; it costs next to nothing."""
    assert growth(server, lambda: flood(wire, pieces())) < SPARE
    assert set(statuses(wire)) <= {400, 408, 413, 431}


def test_empty_lines_without_end_cost_nothing(server: Running, wire: Wire) -> None:
    """They begin no request (RFC 9112, 2.2): the connection ends, or a request after them is answered."""
    assert growth(server, lambda: flood(wire, [*repeat(b"\r\n" * 2048, 2048), post(REVIEW)])) < SPARE
    reply = wire.reply()
    assert reply is None or reply.status in {200, 400, 408}


def test_a_gibibyte_in_chunks_is_413(server: Running, wire: Wire) -> None:
    """As fast as it can be sent: it is not held, and not read to its end."""
    blocks = count(2**11, 2**14)

    def send() -> None:
        flood(wire, [CHUNKED, *repeat(chunk(BLOCK), blocks)])

    assert growth(server, send) < CAP + SPARE
    assert statuses(wire) in ([413], [])


def test_a_body_in_a_million_chunks_is_answered(server: Running, wire: Wire) -> None:
    """A byte in each, or the caller is told to send larger ones: it costs no memory beside the body's."""
    body = REVIEW + b" " * count(200_000, 1_000_000)
    data = b"".join(map(chunk, (body[at : at + 1] for at in range(len(body))))) + chunk(b"")
    assert growth(server, lambda: flood(wire, [CHUNKED, data])) < CAP + SPARE
    reply = wire.reply()
    assert reply is None or reply.status in {200, 400}


@pytest.mark.parametrize("length", [41 * MIB, 2**31, 2**32 + 10, 2**40, 2**63 - 1])
def test_a_giant_that_tells_its_length_is_413(length: int, server: Running, wire: Wire) -> None:
    """Before a byte of it is read; the connection ends."""

    def send() -> None:
        flood(wire, [head(length), *repeat(BLOCK, 512)])

    assert growth(server, send) < SPARE
    assert statuses(wire) in ([413], [])


def test_a_giant_that_tells_its_length_and_waits_is_told(wire: Wire) -> None:
    """Who listens hears why."""
    wire.send(head(2**40))
    reply = wire.reply()
    assert reply is not None
    assert (reply.status, reply.closes) == (413, True)
    assert wire.reply() is None


def test_a_hundred_giants_at_once_are_bounded_together(tmp_path: Path) -> None:
    """Each sends more than the cap: what is held of all of them is --body-memory and, as docs/protocol.md says, 1 MiB a
    connection beside it; real calls are answered meanwhile."""
    held = 64 * MIB
    with serving(tmp_path, "--policies", LIBRARY, "--body-memory", str(held)) as server:
        giants = [threading.Thread(target=one_giant, args=(server,)) for _ in range(count(16, 100))]
        buffers = len(giants) * MIB  # of uvloop's TLS, of OpenSSL, and what one read of the two left for later turns

        def all_at_once() -> None:
            for giant in giants:
                giant.start()
            until(lambda: server.post("/mutate", REVIEW).status == 200, "an answer while they send")
            for giant in giants:
                giant.join()

        assert growth(server, all_at_once) < held * 1.25 + buffers + SPARE
        assert server.post("/mutate", REVIEW).status == 200


def one_giant(server: Running) -> None:
    with dialled(server) as wire:
        flood(wire, [CHUNKED, *repeat(chunk(BLOCK), 1024)])


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "GZIP", "zstd", "identity, gzip", "x-gzip", "compress"])
def test_a_compressed_body_is_rejected_before_it_is_inflated(coding: str, server: Running, wire: Wire) -> None:
    """A bomb of a gibibyte in a megabyte: 415, and nothing grows. The API server never compresses."""
    grown = growth(server, lambda: wire.send(post(BOMB, Content_Encoding=coding)))
    reply = wire.reply()
    assert reply is not None
    assert reply.status == 415
    assert grown < SPARE


def bomb() -> bytes:
    """Zeros, twice compressed to a thousandth."""
    return gzip.compress(bytes(64 * MIB), compresslevel=6) * 16


BOMB = bomb()


def test_questions_whose_answers_nobody_reads_are_not_piled_up(server: Running) -> None:
    """A caller that asks and asks and never reads is not read from any more. (That it is cut: test_slow_clients.py.)"""
    with dialled(server, receive_buffer=4096) as wire:
        wire.socket.settimeout(2)

        def ask() -> None:
            with pytest.raises(TimeoutError):
                flood(wire, repeat(post(REVIEW) * 20, 5000))

        assert growth(server, ask) < SPARE
    assert server.post("/mutate", REVIEW).status == 200
