"""The bench of a cluster that is followed: its nodes; and an audit of it in small, as a process, on a real control plane."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bench.harness.following import fleet
from documents.files import read_catalog
from policies.facts.platform_detection import home
from tests.bench.test_main import bench
from tests.support.counts import only_in_prove

WRK = os.environ.get("BERTH_WRK") or shutil.which("wrk")


def test_nodes_are_unlike() -> None:
    """Each has a name and a serial of its own, and most are seen to have GPUs: a fleet of equal ones would be kept once."""
    nodes = list(fleet(600))
    assert len({node["metadata"]["name"] for node in nodes}) == 600
    assert len({node["metadata"]["labels"]["example.com/serial"] for node in nodes}) == 600
    catalog = read_catalog([])
    assert [home(catalog, node["metadata"]["labels"]) for node in nodes].count("gfd") >= 500


@only_in_prove
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="measuring needs two cores")
@pytest.mark.skipif(not (WRK and shutil.which("go")), reason="there is no wrk or no Go here, with which this part of the bench works")
def test_it_measures_an_audit_beside_a_replica(tmp_path: Path) -> None:
    """In small: reports are written anew, counted, and calls are answered meanwhile. The reports themselves: tests/e2e/audit."""
    results = tmp_path / "RESULTS.md"
    done = bench("audit", "--quick", "--results", str(results))
    assert done.returncode == 0, done.stderr
    page = results.read_text()
    assert "first full report: 20 reports: at most 60 s" in page
    assert "| the audit begins again |" in page
