"""Certificates swapped on disk while fifty clients handshake: none of them notices."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvloop

from certs.authority import CertificateError, issue, make_ca
from certs.following import FollowedFiles
from certs.serving import LiveContext
from tests.certs.calls import HOSTS, KINDS, VERSIONS, connect, context, echo
from tests.certs.pairs import Issued, put_by_rename, put_by_symlink, serial_of
from tests.support.counts import count
from tests.testcluster.calls import PATIENCE

SWAPS = count(20, 1000)
CLIENTS = 50
BETWEEN = 4
"""Handshakes that end between two swaps; all clients are in the middle of one."""
LOOK = 0.002
"""Seconds between two looks at the files, five hundred times as often as the server looks: more chances to meet a torn pair."""


@dataclass(slots=True)
class Server:
    """An echo over TLS on a thread of its own, which follows its certificate."""

    source: FollowedFiles
    live: LiveContext
    listening: socket.socket
    handshakes: int = 0
    failures: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.listening.getsockname()[1])

    async def run(self, ready: threading.Event, stop: threading.Event) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, what: self.failures.append(str(what)))
        server = await asyncio.start_server(self._echo, sock=self.listening, ssl=self.live.context)
        ready.set()
        while not stop.is_set():
            await asyncio.sleep(LOOK)
            self._look()
        server.close()

    def _look(self) -> None:
        self.denied.clear()
        try:
            found = self.source.refresh(datetime.now(UTC))
        except CertificateError as error:
            self.denied.append(str(error))
            return
        if found is not None:
            self.live.replace(found)

    async def _echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.handshakes += 1
        try:
            while piece := await reader.read(100):
                writer.write(piece)
        finally:
            writer.close()

    def wait_for(self, done: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < end, f"{self.handshakes} handshakes, rejected: {self.denied}, failures: {self.failures}"
            time.sleep(0.001)

    def wait_for_serial(self, serial: int) -> None:
        self.wait_for(lambda: self.live.serving.serial == serial)

    def wait_for_handshakes(self, more: int) -> None:
        goal = self.handshakes + more
        self.wait_for(lambda: self.handshakes >= goal)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    source = FollowedFiles(folder / "tls.crt", folder / "tls.key")
    first = source.refresh(datetime.now(UTC))
    assert first is not None
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    server, ready, stop = Server(source=source, live=LiveContext(first), listening=listening), threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: uvloop.run(server.run(ready, stop)))
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield server
    finally:
        stop.set()
        thread.join()


@contextmanager
def calling(server: Server, ca: Path) -> Iterator[Callable[[], dict[str, dict[str, int]]]]:
    """Fifty clients in another process; the result ends them and gives what they saw."""
    command = [sys.executable, "-m", "tests.certs.calls", str(server.port), str(ca), str(CLIENTS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield lambda: json.loads(process.communicate(timeout=PATIENCE)[0])
        finally:
            process.kill()


@pytest.mark.parametrize("write", [put_by_rename, put_by_symlink])
def test_nobody_notices_a_swap(write: Callable[[Path, Issued], None], tmp_path: Path) -> None:
    """No handshake fails, by TLS 1.2 or 1.3, by name or by address; each pair is seen; connections that were open stay so."""
    now = datetime.now(UTC)
    ca = make_ca(now)
    (tmp_path / "ca.crt").write_bytes(ca.certificate_pem)
    leaves = [issue(ca, HOSTS, now) for _ in range(SWAPS + 1)]
    pairs = [Issued(certificate=leaf.certificate, key=leaf.key) for leaf in leaves]
    write(tmp_path, pairs[0])
    with serving(tmp_path) as server, ExitStack() as open_ones:
        opened = [
            open_ones.enter_context(connect(server.port, context(str(tmp_path / "ca.crt"), version), host)) for version, host in KINDS
        ]
        with calling(server, tmp_path / "ca.crt") as end:
            server.wait_for_handshakes(2 * CLIENTS)
            for pair in pairs[1:]:
                write(tmp_path, pair)
                server.wait_for_serial(pair.certificate.serial_number)
                server.wait_for_handshakes(BETWEEN)
            server.wait_for_handshakes(2 * CLIENTS)
            assert all(echo(connection) for connection in opened)
            seen = end()
        assert {serial_of(connection) for connection in opened} == {pairs[0].certificate.serial_number}
        assert (seen["errors"], server.failures, server.denied) == ({}, [], [])
    serials = [f"{pair.certificate.serial_number:x}" for pair in pairs]
    assert set(seen["serials"]) <= set(serials)
    assert {serials[0], serials[-1]} <= set(seen["serials"])
    assert len(seen["serials"]) > SWAPS / 2
    assert len(seen["kinds"]) == len(VERSIONS) * len(HOSTS)
    print(f"{sum(seen['kinds'].values())} handshakes, {SWAPS} swaps, {len(seen['serials'])} of them seen")
