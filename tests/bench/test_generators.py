"""What vegeta is given, and what is read off its results."""

from __future__ import annotations

import base64
from pathlib import Path

import orjson
import pytest

from bench.harness.generators import LoadRun, summarized, targets
from tests.support.machine import BenchError

SECOND = 1_000_000_000
BEGIN = 1_795_870_448_746_626_636
"""a time that no float can say"""


def row(sent: float, ms: float, status: str = "200", body: str = "") -> list[str]:
    """A row as ``vegeta encode -to=csv`` writes it."""
    error = "" if status == "200" else f"{status} status"
    return [f"{BEGIN + round(sent * SECOND)}", status, f"{int(ms * 1e6)}", "0", "0", error, base64.b64encode(body.encode()).decode()]


def summary(*rows: list[str], warm_up: float = 0.0) -> LoadRun:
    return summarized(rows, expected="200", warm_up=warm_up, generator=0.0)


def test_bodies_are_sent_in_turn_with_numbers_of_their_own(tmp_path: Path) -> None:
    """As many as are asked for; without a number of calls, each body once."""
    file = tmp_path / "load.jsonl"
    file.write_bytes(b'{"a":"@@@@@@@@"}\n{"b":"@@@@@@@@"}\n')
    sent = [base64.b64decode(orjson.loads(line)["body"]) for line in targets("https://x", file, token="", first=7, calls=3)]
    assert sent == [b'{"a":"00000007"}', b'{"b":"00000008"}', b'{"a":"00000009"}']
    assert len([*targets("https://x", file, token="", first=0, calls=0)]) == 2


def test_a_token_is_sent_in_a_header(tmp_path: Path) -> None:
    """An API server takes pods from nobody else."""
    file = tmp_path / "load.jsonl"
    file.write_bytes(b"{}\n")
    (line,) = targets("https://x", file, token="secret", first=0, calls=0)
    assert orjson.loads(line)["header"]["Authorization"] == ["Bearer secret"]


def test_latencies_are_ranked() -> None:
    """Whatever the order of the answers is."""
    run = summary(*(row(number / 100, ms=100 - number) for number in range(100)))
    assert (run.calls, run.failed, run.p50, run.p99, run.longest) == (100, 0, 51_000, 100_000, 100_000)
    assert run.rate == pytest.approx(100 / 0.991)


def test_calls_of_the_first_moments_do_not_count() -> None:
    """They make the connections: at most half a second of them, and a quarter of a short run."""
    rows = [row(number / 10, ms=500 if number < 5 else 1) for number in range(100)]
    assert (summary(*rows, warm_up=0.5).calls, summary(*rows, warm_up=0.5).longest) == (95, 1_000)
    assert summary(*rows[:9], warm_up=0.5).calls == 7


def test_a_failure_is_counted_and_told() -> None:
    """With the status and what the server answered first."""
    run = summary(row(0, 1), row(1, 1, "500", "no room"), row(2, 1, "503", "later"))
    assert (run.calls, run.failed, run.message) == (3, 2, "500 no room 500 status")


def test_the_end_of_the_bodies_is_no_call() -> None:
    """vegeta notes it as a result without a status."""
    ended = row(2, 0, "0")
    ended[5] = "no targets to attack"
    assert summary(row(0, 1), ended).calls == 1


def test_a_call_without_an_answer_is_an_error() -> None:
    """A connection that breaks is no figure."""
    with pytest.raises(BenchError, match="1 calls had no answer: 0 status"):
        summary(row(0, 1), row(1, 1, "0"))
