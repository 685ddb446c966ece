"""Fuzzed bodies over TLS against ``berth serve``: an answer to each, none of them 5xx but 503, and memory that stays."""

from __future__ import annotations

import contextlib
import socket
import sys
from pathlib import Path

import pytest

from tests.fuzz import wire
from tests.fuzz.wire import MIB, Answer, drive
from tests.fuzz.worlds import LIBRARY, PLATFORMS
from tests.support.calls.server_process import serving
from tests.support.counts import count

BODIES = count(2_000, 1_000_000)
SEED = 20
MAY_GROW = count(32, 8) * MIB
"""From the middle window to the last. With few bodies the decisions that are kept (12 MiB of them) are not full yet there."""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc, which only Linux has")
def test_no_body_hurts_the_server(tmp_path: Path) -> None:
    """Every one is answered within a second: 200, 4xx, or 503 with Retry-After; the log tells of no failure."""
    options = ["--policies", str(LIBRARY), "--platforms", ",".join(PLATFORMS)]
    with serving(tmp_path, *options) as running:
        report = drive(running, SEED, BODIES)
    print(
        f"{sum(report.statuses.values())} bodies: {dict(report.statuses)}; resident MiB {[r // MIB for r in report.resident]}",
        file=sys.stderr,
    )
    assert report.wrong == []
    assert report.statuses[200] > BODIES / 10  # the fuzzer gets past the parser
    assert max(report.resident[10:]) - report.resident[10] < MAY_GROW, report.resident


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(status=500, headers={}, body=b""), "status 500"),
        (Answer(status=503, headers={}, body=b""), "503 without Retry-After"),
        (Answer(status=200, headers={}, body=b'{"kind":"AdmissionReview"}'), "no AdmissionReview"),
        (Answer(status=200, headers={}, body=b'{"kind":"AdmissionReview","response":{"uid":"u","patch":"x"}}'), "patch without patchType"),
        (Answer(status=302, headers={}, body=b""), "status 302"),
    ],
)
def test_a_wrong_answer_is_told(answer: Answer, why: str) -> None:
    """What the run above looks for would be seen."""
    assert wire.wrong(answer).startswith(why)


def test_the_log_is_read_as_it_grows(tmp_path: Path) -> None:
    """Each failure is told once, and what was read takes no room any more."""
    path = tmp_path / "log"
    with path.open("wb", buffering=0) as log:
        log.write(b'{"event":"serving"}\n')
        watch = wire.LogWatch(path)
        log.write(b'{"event":"failed","n":1}\n' * 100_000)
        assert len(watch.failures()) == 100_000
        log.write(b'{"event":"decision"}\n{"event":"failed","n":2}\n')
        assert watch.failures() == [b'{"event":"failed","n":2}']
        assert path.stat().st_blocks * 512 < MIB


def test_a_connection_that_is_closed_is_told() -> None:
    """A server that hangs up instead of answering is a failure, not the end of a body."""
    ours, theirs = socket.socketpair()
    with contextlib.closing(wire.Connection(None, None, ours)) as connection, theirs:  # type: ignore[arg-type]  # no server is dialled
        theirs.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(AssertionError, match="closed the connection"):
            connection.answer()
