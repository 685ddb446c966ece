"""What the end-to-end bench makes of what it saw; and all of it in small, as a process, on a real control plane."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

import pytest

from bench.harness.creations import Buckets, more, within
from bench.harness.intervals import median_of
from bench.harness.native import MUTATE, NATIVE, NONE
from bench.questions.endtoend import CreationRound, added, added_ratio
from tests.bench.test_main import bench
from tests.support.counts import only_in_prove

BUCKETS: Buckets = {0.01: 50.0, 0.025: 99.0, math.inf: 100.0}


def rounds(*medians: float) -> list[CreationRound]:
    return [CreationRound(rate=100, p50=us, p99=us, control_plane=0, own=0) for us in medians]


SEEN = {NONE: rounds(1000, 1100, 1200), NATIVE: rounds(2000, 2100, 2200), MUTATE: rounds(2500, 2600, 2700)}


def test_what_is_added_is_taken_round_by_round() -> None:
    """A machine that grows slower with every round adds to all alike, and not to the difference."""
    interval = median_of(added(SEEN, MUTATE))
    assert (interval.middle, interval.low, interval.high) == (1500, 1500, 1500)


def test_what_is_added_is_compared() -> None:
    """Half as much again as the native policy adds."""
    assert added_ratio(SEEN, MUTATE, NATIVE).middle == 1.5


def test_an_interval_covers_what_rounds_say() -> None:
    """Rounds that differ give an interval around their median, which one disturbed round does not move."""
    seen = {NONE: rounds(*[1000] * 7), NATIVE: rounds(1100, 1150, 1200, 1250, 1300, 1350, 9000)}
    interval = median_of(added(seen, NATIVE))
    assert interval.middle == 250
    assert 100 <= interval.low < 250 < interval.high <= 8000


def test_a_round_in_which_nothing_was_added_is_no_error() -> None:
    """The machine was disturbed in it; the other rounds decide."""
    seen = {NONE: rounds(1000, 1000, 1000), NATIVE: rounds(2000, 1000, 2000), MUTATE: rounds(2500, 2500, 2500)}
    assert added_ratio(seen, MUTATE, NATIVE).middle == 1.5


def test_a_share_is_exact_at_a_bound() -> None:
    """Which is what the bar of 25 ms is judged by."""
    assert within(BUCKETS, 0.025) == 0.99


def test_nothing_counted_is_no_figure() -> None:
    """Neither 0 ms nor a division by zero: a histogram that was never read would pass every bar."""
    nothing = more(BUCKETS, BUCKETS)
    assert math.isnan(within(nothing, 0.025))


def test_only_what_came_between_two_pages_counts() -> None:
    """Also of a series that the first page did not have."""
    assert more(BUCKETS, {0.01: 20.0, 0.025: 20.0, math.inf: 20.0}) == {0.01: 30.0, 0.025: 79.0, math.inf: 80.0}
    assert more(BUCKETS, {}) == BUCKETS


@only_in_prove
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="measuring needs two cores")
@pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go here, and this part of the bench builds a control plane with it")
def test_it_measures_and_records(tmp_path: Path) -> None:
    """In small: every candidate stores the same pod, the burst is stored whole, and all is on the page.

    ``make test`` has the burst (``test_burst``), and what is made of the figures, above."""
    results = tmp_path / "RESULTS.md"
    done = bench("endtoend", "--quick", "--results", str(results))
    assert done.returncode == 0, done.stderr
    page = results.read_text()
    assert "| job, 1, dry run | no webhook |" in page
    assert "|  | Berth /mutate |" in page
    assert "0 failed, 0 fail-open, 0 that Berth did not count as admitted, of 128" in page
