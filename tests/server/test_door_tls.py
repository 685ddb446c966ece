"""Before the first byte of HTTP (reliability.md E9): handshakes that are begun and dropped, and what is no TLS at all."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.support.calls.raw_tls import GONE, Wire, all_of, context, dialled, post, tcp
from tests.support.calls.server_process import ROOT, Running, serving
from tests.support.calls.webhook_client import NAMES, calling
from tests.support.counts import count

REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that real callers can verify too. It has made no mistake of its own at the end, and filled no log."""
    with serving(tmp_path_factory.mktemp("server"), *NAMES) as it:
        yield it
        assert it.process.poll() is None
        assert b"Traceback" not in it.log.read_bytes()
        assert it.events("library") == []


def client_hello() -> bytes:
    """What a client of TLS sends first."""
    out = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


HELLO = client_hello()
DISTRUSTING = ssl.create_default_context()


def half_a_hello(server: Running) -> None:
    with tcp(server) as raw:
        raw.sendall(HELLO[: len(HELLO) // 2])
        Wire(raw).reset()


def a_hello_and_no_more(server: Running) -> None:
    with tcp(server) as raw:
        raw.sendall(HELLO)
        raw.recv(100)
        Wire(raw).reset()


def a_handshake_and_goodbye(server: Running) -> None:
    with dialled(server):
        pass


def a_handshake_and_a_reset(server: Running) -> None:
    with dialled(server) as wire:
        wire.reset()


def a_call_and_a_reset(server: Running) -> None:
    with dialled(server) as wire:
        wire.send(post(REVIEW))
        wire.reset()


def half_a_call_and_a_reset(server: Running) -> None:
    with dialled(server) as wire:
        wire.send(post(REVIEW)[:-100])
        wire.reset()


def nothing_at_all(server: Running) -> None:
    with tcp(server):
        pass


def a_client_of_another_authority(server: Running) -> None:
    with tcp(server) as raw, contextlib.suppress(ssl.SSLCertVerificationError):
        DISTRUSTING.wrap_socket(raw, server_hostname="localhost")


ABORTS = [
    half_a_hello,
    a_hello_and_no_more,
    a_handshake_and_goodbye,
    a_handshake_and_a_reset,
    a_call_and_a_reset,
    half_a_call_and_a_reset,
    nothing_at_all,
    a_client_of_another_authority,
]


@pytest.mark.parametrize("abort", ABORTS)
def test_callers_that_hang_up_harm_nobody(abort: Callable[[Running], None], server: Running) -> None:
    """Two hundred of them from eight at once, while kube-apiserver's client calls: none of its calls fails, and nothing is left open."""
    with calling([server], "-callers", "4", "-rate", "100") as callers:
        callers.call_on(10)
        threads = [threading.Thread(target=repeat, args=(abort, server, count(25, 250))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        callers.call_on(10)
        tally = callers.stop()
    assert (tally.failed, dict(tally.errors)) == (0, {})


def repeat(abort: Callable[[Running], None], server: Running, times: int) -> None:
    for _ in range(times):
        abort(server)


NO_TLS = {
    "http": post(REVIEW),
    "http-get": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "zeros": b"\x00" * 4096,
    "text": b"hello\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.9\r\n",
    "hello-of-ssl-2": b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10" + b"\x00" * 37,
    "record-of-the-largest-size": b"\x16\x03\x01\xff\xff" + b"\x01" * 70_000,
    "hello-that-lies-of-its-length": HELLO[:6] + b"\xff\xff" + HELLO[8:],
    "proxy-protocol": b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + HELLO,
}


@pytest.mark.parametrize("data", NO_TLS.values(), ids=NO_TLS)
def test_what_is_no_tls_is_ended(data: bytes, server: Running) -> None:
    """At once or when the handshake's time is over, with a TLS alert at most: never with words that could be taken for an answer."""
    with tcp(server) as raw:
        with contextlib.suppress(*GONE):
            raw.sendall(data)
        assert b"HTTP" not in all_of(raw)
    with dialled(server) as wire:
        wire.send(post(REVIEW))
        reply = wire.reply()
        assert reply is not None
        assert reply.status == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_an_old_version_of_tls_is_rejected(version: ssl.TLSVersion, server: Running) -> None:
    """1.2 is the least, as kube-apiserver's own."""
    old = context(server.ca)
    old.minimum_version = version
    old.maximum_version = version
    old.set_ciphers("ALL:@SECLEVEL=0")
    with tcp(server) as raw, pytest.raises(ssl.SSLError):
        old.wrap_socket(raw, server_hostname="localhost")
