"""``bench.questions.sizing``: what follows from a measured cost, and the measurement in small."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bench.questions.sizing import LEAST, PLANNED, need
from tests.bench.test_main import bench
from tests.support.counts import only_in_prove


@pytest.mark.parametrize(("rate", "replicas", "millicores"), [(100, LEAST, 100), (699, LEAST, 699), (701, 4, 467)])
def test_all_but_one_carry_everything(rate: float, replicas: int, millicores: float) -> None:
    """At two milliseconds for a pod two replicas carry almost 700 a second, and more need a third."""
    number, each = need(rate, 0.002)
    assert (number, round(each)) == (replicas, millicores)
    assert each <= PLANNED * 1000


@only_in_prove
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="measuring needs two cores")
@pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go here, and this part of the bench builds a control plane with it")
def test_it_measures_and_records(tmp_path: Path) -> None:
    """In small: each load costs something, and all of it is on the page. What follows from it is tested above."""
    results = tmp_path / "RESULTS.md"
    done = bench("sizing", "--quick", "--results", str(results))
    assert done.returncode == 0, done.stderr
    page = results.read_text()
    assert "| all unlike in what is read |" in page
    assert "| policies | nodes | s until ready | MB when ready | MB after the loads |" in page
