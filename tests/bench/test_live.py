"""The bench of a cluster that is followed: its objects; and all of it in small, as a process, on real control planes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import live_cluster
from policies.detect import home
from tests.patience import PATIENCE
from webhook.files import read_catalog

ROOT = Path(__file__).parent.parent.parent
WRK = os.environ.get("BERTH_WRK") or shutil.which("wrk")


def test_nodes_are_unlike() -> None:
    """Each has a name and a serial of its own, and most are seen to have GPUs: a fleet of equal ones would be kept once."""
    nodes = list(live_cluster.fleet(600))
    assert len({node["metadata"]["name"] for node in nodes}) == 600
    assert len({node["metadata"]["labels"]["example.com/serial"] for node in nodes}) == 600
    catalog = read_catalog([])
    assert [home(catalog, node["metadata"]["labels"]) for node in nodes].count("gfd") >= 500


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="measuring needs two cores")
@pytest.mark.skipif(not (WRK and shutil.which("go")), reason="there is no wrk or no Go here, with which this part of the bench works")
def test_it_measures_and_records(tmp_path: Path) -> None:
    """In small: both sizes answer under load, follow every change, and hear of nodes; all of it is on the page."""
    results = tmp_path / "RESULTS.md"
    command = [sys.executable, "-m", "bench", "live", "--quick", "--results", str(results)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=10 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    page = results.read_text()
    assert "| unlike | 100 |" in page
    assert "| policies | namespaces | nodes | s until ready |" in page
    assert "| statuses of nodes change | " in page
