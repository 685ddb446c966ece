"""The coverage-guided fuzzer: whatever the body, an answer that the API server takes, or a sentence; never a crash, never a hang."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.fuzz import campaign
from tests.fuzz.guided import Fuzzed, kind_of_failure
from tests.support.counts import count

BODIES = count(1_000, 2_000_000)
PROCESSES = count(1, 2)


def test_no_body_is_judged_wrongly(tmp_path: Path) -> None:
    """On parse, evaluate and answer, behind what is kept of earlier bodies, on all three paths: no law of the oracle is broken."""
    campaign.needs_atheris()
    found = campaign.run(tmp_path, BODIES, PROCESSES)
    print(f"{found.bodies} bodies in {found.seconds:.0f} s, {found.coverage} edges, slowest {found.slowest:.3f} s", file=sys.stderr)
    assert [path.read_bytes() for path in found.failures] == []
    assert found.bodies >= BODIES
    assert found.coverage > 2_000  # of 3,000: the seeds alone take 1,900; what is left is start-up, flags and files


def test_some_bodies_are_kept_of_each_way_to_fail(tmp_path: Path) -> None:
    """With where it was raised; the fuzzer goes on."""

    def check(body: bytes) -> None:
        assert body != b"a"
        int(body)

    fuzzed = Fuzzed(tmp_path, check)
    for body in (b"a", b"1", *(b"x%d" % number for number in range(9))):
        fuzzed.one(body)
    kept = {path.read_bytes() for path in tmp_path.glob("crash-*") if path.suffix == ""}
    assert kept == {b"a", b"x0", b"x1", b"x2", b"x3"}
    assert all("Traceback" in path.read_text() for path in tmp_path.glob("*.trace"))


def test_a_body_that_takes_long_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one that is slower than all before it."""
    monkeypatch.setattr("tests.fuzz.guided.SLOW", 0.0)
    fuzzed = Fuzzed(tmp_path, lambda body: sum(range(200_000)))
    fuzzed.one(b"slow")
    assert [path.read_bytes() for path in tmp_path.glob("slow-*")] == [b"slow"]


def test_failures_are_told_apart_by_our_lines() -> None:
    """The same function of ours, the same failure, whatever the value was."""

    def raised(body: bytes) -> Exception:
        with pytest.raises(ValueError, match="invalid literal") as caught:
            int(body)
        return caught.value

    assert kind_of_failure(raised(b"x")) == kind_of_failure(raised(b"y"))
