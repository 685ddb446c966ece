"""A log that nobody reads: calls go on, lines stay whole and in order, and what is lost is told."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
from pathlib import Path
from typing import IO

import uvloop

from tests.webhook.server import COMMAND, LIBRARY, ROOT, Running, running
from webhook.log_stream import WAITING, LogStream

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
        told: list[int] = []
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 2**16)
        stream = LogStream(writer, asyncio.get_running_loop(), told.append)
        for number in range(2000):
            stream.write(f"{number:04d} " + "x" * 1018 + "\n")
        read = b""
        while not told:
            read += read_all(reader)
            await asyncio.sleep(0.01)
        read += read_all(reader)
        os.close(reader)
        os.close(writer)
        return told, read

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        told, read = runner.run(overflow())
    lines = read.decode().splitlines()
    assert [line[:4] for line in lines] == [f"{number:04d}" for number in range(len(lines))]
    assert all(len(line) == 1023 for line in lines)
    assert told == [2000 - len(lines)]
    assert WAITING <= len(read) <= WAITING + 2**17


def test_a_closed_log_is_no_failure() -> None:
    """The reader is gone for good: lines go nowhere, and the process goes on."""

    async def write() -> None:
        reader, writer = os.pipe()
        stream = LogStream(writer, asyncio.get_running_loop(), lambda lines: None)
        os.close(reader)
        for _ in range(3):
            stream.write("line\n")
        os.close(writer)

    asyncio.run(write())


def test_what_waits_is_written_at_the_end() -> None:
    """As far as it is taken without waiting."""

    async def write(descriptor: int) -> LogStream:
        stream = LogStream(descriptor, asyncio.get_running_loop(), lambda lines: None)
        for _ in range(100):
            stream.write("y" * 1023 + "\n")
        return stream

    reader, writer = os.pipe()
    stream = asyncio.run(write(writer))
    first = read_all(reader)
    stream.close()
    assert first + read_all(reader) == (b"y" * 1023 + b"\n") * 100
    os.close(reader)
    os.close(writer)
