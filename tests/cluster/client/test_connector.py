"""Connections that are given up or reset in their first moments, and what is left of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs.authority import issue, make_ca
from cluster.client.access import Access
from cluster.client.api_client import Client, Unreachable
from cluster.client.connector import Resolver
from tests.support.cluster.collecting_store import run
from tests.support.cluster.fake_api import kubeconfig
from tests.support.counts import count
from tests.testcluster.calls import PATIENCE

CALLS = 9
ROUNDS = count(20, 300)


@contextmanager
def listening(*, resets: bool = False) -> Iterator[int]:
    """A port that takes connections and says nothing; or resets each at once."""
    ended = threading.Event()
    kept: list[socket.socket] = []

    def accept() -> None:
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                one, _ = listener.accept()
                if resets:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    one.close()
                else:
                    kept.append(one)

    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        listener.settimeout(0.02)
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ended.set()
            thread.join()
            for one in kept:
                one.close()


def test_connections_that_are_reset_at_once_close_nobody_elses(tmp_path: Path) -> None:
    """Calls without end to a port that resets each, beside sockets of others: none of those is closed by it, and the process lives."""

    async def work() -> None:
        with listening(resets=True) as port:
            client = await Client.connect(Access(str(kubeconfig(tmp_path, f"https://127.0.0.1:{port}", "abc"))))

            async def ask() -> None:
                for _ in range(ROUNDS):
                    with pytest.raises(Unreachable):
                        await client.call("GET", "/", seconds=5)
                    pairs = [socket.socketpair() for _ in range(4)]
                    await asyncio.sleep(0)
                    for pair in pairs:
                        for one in pair:
                            os.fstat(one.fileno())
                            one.close()

            await asyncio.gather(*[ask() for _ in range(CALLS)])
            await client.close()

    run(work())


def test_a_cancellation_is_never_taken_for_a_timeout(tmp_path: Path) -> None:
    """In the very turn of the event loop in which the time of a call is up: whoever waits for the task would wait for ever."""

    async def work() -> None:
        with listening() as port:
            client = await Client.connect(Access(str(kubeconfig(tmp_path, f"http://127.0.0.1:{port}", "abc"))))
            for _ in range(5):
                task = asyncio.create_task(client.call("GET", "/", seconds=0.1))
                await asyncio.sleep(0.05)
                time.sleep(0.1)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await client.close()

    run(work())


@contextmanager
def streaming(folder: Path) -> Iterator[str]:
    """The address of a TLS server that begins an answer, and then neither reads nor writes."""
    ca = make_ca(datetime.now(UTC))
    pair = issue(ca, ["127.0.0.1"], datetime.now(UTC))
    (folder / "ca.crt").write_bytes(ca.certificate_pem)
    (folder / "tls.pem").write_bytes(pair.certificate_pem + pair.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.pem")
    ended = threading.Event()

    def serve(one: socket.socket) -> None:
        with contextlib.suppress(OSError), context.wrap_socket(one, server_side=True) as stream:
            stream.recv(1 << 16)
            stream.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na\n\r\n")
            ended.wait()

    def accept() -> None:
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                threads.append(threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        listener.settimeout(0.02)
        threads = [threading.Thread(target=accept, daemon=True)]
        threads[0].start()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            for thread in threads:
                thread.join()


def test_a_client_that_is_closed_leaves_no_connection(tmp_path: Path) -> None:
    """Streams that are cancelled while they are made and used, of a server that answers no farewell: the loop is closed right after."""

    async def work(server: str) -> None:
        client = await Client.connect(Access(str(kubeconfig(tmp_path, server, "abc", tmp_path / "ca.crt"))))

        async def follow() -> None:
            async with client.stream("/", {}, 60.0) as lines:
                while await lines.batch():
                    pass

        tasks = [asyncio.create_task(follow()) for _ in range(CALLS)]
        await asyncio.sleep(random.uniform(0, 0.2))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.close()

    with streaming(tmp_path) as server, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        for _ in range(count(5, 100)):
            run(work(server))
    assert [str(one.message) for one in caught if "unclosed" in str(one.message)] == []


ROOT = Path(__file__).parent.parent.parent.parent
NEVER = """
import asyncio, socket, sys, time, uvloop
from cluster.client.connector import Resolver
from tests.testcluster.calls import PATIENCE

def slow(*_):
    print("asked", flush=True)
    time.sleep(600)

async def work():
    task = asyncio.create_task(Resolver().resolve("slow.example", 443))
    await asyncio.sleep(0.2)
    task.cancel()

socket.getaddrinfo = slow
with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(work())
"""
"""a program with name servers that do not answer"""


def test_a_name_gives_its_addresses() -> None:
    """localhost, as the system has it; a name that is none raises OSError."""

    async def work() -> None:
        found = await Resolver().resolve("localhost", 443, socket.AF_UNSPEC)
        assert {"127.0.0.1", "::1"} >= {one["host"] for one in found} != set()
        assert {(one["hostname"], one["port"]) for one in found} == {("localhost", 443)}
        for wrong in ("a" * 64, "..", "nothing.invalid"):
            with pytest.raises(OSError):
                await asyncio.wait_for(Resolver().resolve(wrong, 443), PATIENCE)

    run(work())


def test_a_process_ends_while_a_name_is_looked_up() -> None:
    """Name servers that do not answer hold up nobody who has ended."""
    done = subprocess.run([sys.executable, "-c", NEVER], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "asked\n", "")
