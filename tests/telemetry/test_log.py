"""A log line: JSON, ASCII, one line, whatever is in it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import io
import json
import os
import resource
import shlex
import signal
import socket
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from documents.printable import cut
from telemetry import log
from telemetry.log import WAITING, LogWriter
from tests.support.calls.server_process import COMMAND, LIBRARY, ROOT, Running, running, until
from tests.support.counts import count, only_in_prove
from tests.testcluster.calls import PATIENCE


def written(**fields: object) -> str:
    with contextlib.redirect_stderr(io.StringIO()) as stream:
        log.write("decision", **fields)
    return stream.getvalue()


def test_an_event_has_time_level_and_name_first() -> None:
    """The time is UTC with milliseconds."""
    fields = json.loads(written(pod="a"))
    assert list(fields) == ["time", "level", "event", "pod"]
    assert datetime.now(UTC) - datetime.fromisoformat(fields["time"]) < timedelta(minutes=1)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_stays_in_one_line_and_comes_back(text: str) -> None:
    """No character ends a line, steers a terminal or is lost."""
    line = written(pod=text)
    assert line.isascii()
    assert not any(ord(character) < 32 for character in line[:-1])
    assert line.splitlines() == [line[:-1]]
    assert json.loads(line)["pod"] == text


def test_a_long_text_is_cut() -> None:
    """At 256 characters, and seen to be."""
    assert cut("x" * 256) == "x" * 256
    assert cut("x" * 257) == "x" * 253 + "..."


def test_an_error_is_told_with_its_place() -> None:
    """Type, sentence, file and line of where it was raised."""
    try:
        raise LookupError("what\nwas lost")
    except LookupError as error:
        trace = log.trace(error)
    assert trace.startswith("LookupError: what\nwas lost at ")
    assert "test_log.py:" in trace


REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()
CALLS = 300
"""with a line of about 1 KiB each: several pipes of 64 KiB"""


def read_all(descriptor: int) -> bytes:
    """What is in a pipe now."""
    os.set_blocking(descriptor, False)
    found = b""
    try:
        while piece := os.read(descriptor, 2**16):
            found += piece
    except BlockingIOError:
        pass
    return found


def test_a_log_that_nobody_reads_holds_no_call(tmp_path: Path) -> None:
    """Some hundred decisions are answered while the pipe is full; once it is read, every line comes, whole and in order."""
    options = ["--self-signed", str(tmp_path / "tls"), "--listen", "127.0.0.1:0", "--policies", LIBRARY]
    command = [*COMMAND, *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            server = running(process, tmp_path / "log", serving(process.stderr))
            client = server.connection()
            for _ in range(CALLS):
                client.request("POST", "/mutate", REVIEW, {"Content-Type": "application/json"})
                assert client.getresponse().read()
            client.close()
            assert server.health("/livez").status == 200
            assert decisions(process.stderr) == CALLS
            assert dropped(server) == 0
        finally:
            process.kill()


def serving(log: IO[bytes]) -> dict[str, object]:
    """The event; nothing is read after it."""
    while True:
        event: dict[str, object] = json.loads(log.readline())
        if event["event"] == "serving":
            return event


def decisions(log: IO[bytes]) -> int:
    """How many lines are read until all have come; each is JSON."""
    number = 0
    while number < CALLS:
        number += json.loads(log.readline())["event"] == "decision"
    return number


def dropped(server: Running) -> float:
    name = b"berth_log_lines_dropped_total "
    return float(server.health("/metrics").body.partition(b"\n" + name)[2].partition(b"\n")[0])


def test_lines_wait_up_to_a_bound_and_the_rest_is_counted() -> None:
    """A megabyte waits; what is lost is told once somebody reads again."""

    async def overflow() -> tuple[list[int], bytes]:
        losses: list[int] = []
        lost: list[int] = []
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 2**16)
        stream = LogWriter(writer, asyncio.get_running_loop(), lambda: lost.append(1), losses.append)
        for number in range(2000):
            stream.write((f"{number:04d} " + "x" * 1018 + "\n").encode())
        read = b""
        while not losses:
            read += read_all(reader)
            await asyncio.sleep(0.01)
        read += read_all(reader)
        os.close(reader)
        os.close(writer)
        assert losses == [len(lost)]
        return losses, read

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        losses, read = runner.run(overflow())
    lines = read.decode().splitlines()
    assert [line[:4] for line in lines] == [f"{number:04d}" for number in range(len(lines))]
    assert all(len(line) == 1023 for line in lines)
    assert losses == [2000 - len(lines)]
    assert WAITING <= len(read) <= WAITING + 2**17


def denied(descriptor: int, lines: int) -> int:
    """How many of the lines are lost on a descriptor that takes none."""
    lost: list[int] = []

    async def write() -> None:
        stream = LogWriter(descriptor, asyncio.get_running_loop(), lambda: lost.append(1), lambda number: None)
        for _ in range(lines):
            stream.write(b"line\n")
        stream.close()

    asyncio.run(write())
    return len(lost)


def test_a_closed_log_is_no_failure() -> None:
    """The reader is gone for good: each line is counted as lost, and the process goes on."""
    reader, writer = os.pipe()
    os.close(reader)
    assert denied(writer, 3) == 3
    os.close(writer)


def test_a_full_disk_is_no_failure() -> None:
    """The same for a disk without room, which /dev/full stands for."""
    with open("/dev/full", "wb", buffering=0) as full:
        assert denied(full.fileno(), 3) == 3


def test_a_line_that_was_cut_does_not_spoil_the_next(tmp_path: Path) -> None:
    """A disk that fills up in the middle of a line: its rest is lost, the next whole line stands by itself, and the loss is told."""
    losses: list[int] = []

    async def write(descriptor: int) -> None:
        stream = LogWriter(descriptor, asyncio.get_running_loop(), lambda: None, losses.append)
        stream.write(b"first\n")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))  # the disk is full ten bytes on
        try:
            stream.write(b"the second line\n")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        stream.write(b"third\n")

    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with (tmp_path / "log").open("wb", buffering=0) as log:
            asyncio.run(write(log.fileno()))
    finally:
        signal.signal(signal.SIGXFSZ, before)
    assert (tmp_path / "log").read_text() == "first\nthe second\nthird\n"
    assert losses == [1]


@pytest.mark.parametrize("closed", [pytest.param(">&-", marks=only_in_prove), "2>&-", "2>/dev/full"])
def test_a_server_without_a_log_serves(closed: str, tmp_path: Path) -> None:
    """Standard output or error may be closed, or full: a call is answered, and SIGTERM ends it with 0.
    ``make test`` has standard error, where the log goes."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    listener.close()
    options = f"--self-signed {tmp_path}/tls --listen 127.0.0.1:{port} --lame-duck 0"
    command = f"exec {shlex.join(COMMAND)} {options} {closed}"
    others = subprocess.DEVNULL
    with subprocess.Popen(["/bin/sh", "-c", command], cwd=ROOT, stdout=others, stderr=others) as process:
        try:
            server = Running(process=process, port=port, health_port=0, ca=tmp_path / "tls" / "ca.crt", log=tmp_path / "log")
            until(lambda: answered(server), "an answer")
            assert server.stop(signal.SIGTERM) == 0
        finally:
            process.kill()


def answered(server: Running) -> bool:
    try:
        return server.post("/mutate", REVIEW).status == 200
    except OSError:
        return False


def test_what_is_not_http_fills_no_log(tmp_path: Path) -> None:
    """Many garbled requests while nobody reads the log: counted, not told one by one, and the process stays alive."""
    number = count(600, 2500)
    with subprocess.Popen(
        [*COMMAND, "--self-signed", str(tmp_path / "tls"), "--listen", "127.0.0.1:0"],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        try:
            server = running(process, tmp_path / "log", serving(process.stderr))
            for _ in range(number):
                with socket.create_connection(("127.0.0.1", server.health_port), timeout=PATIENCE) as client:
                    client.sendall(b"BAD\x01\r\n\r\n")
                    assert client.recv(100).startswith(b"HTTP/1.1 400 ")
            assert server.health("/livez").status == 200
            assert b'berth_connections_cut_total{reason="garbled"} %d.0' % number in server.health("/metrics").body
        finally:
            process.kill()


def test_what_waits_is_written_at_the_end() -> None:
    """As far as it is taken without waiting."""

    async def write(descriptor: int) -> LogWriter:
        stream = LogWriter(descriptor, asyncio.get_running_loop(), lambda: None, lambda lines: None)
        for _ in range(100):
            stream.write(("y" * 1023 + "\n").encode())
        return stream

    reader, writer = os.pipe()
    stream = asyncio.run(write(writer))
    first = read_all(reader)
    stream.close()
    assert first + read_all(reader) == (b"y" * 1023 + b"\n") * 100
    os.close(reader)
    os.close(writer)
