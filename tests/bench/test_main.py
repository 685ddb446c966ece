"""``python -m bench``: every part in small, as a process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.counts import PROVE
from tests.testcluster.calls import PATIENCE

ROOT = Path(__file__).parent.parent.parent
PARTS = {
    "engine": "decode + encode",
    "holds": "hostile reviews none holds",
    "servers": "| mixed, 16 | Berth |",
    "openloop": "| nine tenths |",
    "policies": "| unlike | 100 |",
    "memory": "resident MB",
    "giant": "A training pod of 3.0 MiB",
    "handshakes": "handshakes and reviews/s",
    "replay": "| no two alike |",
    "console": "| /impact |",
}
"""what each writes"""
QUICK = tuple(PARTS) if PROVE else ("engine", "servers")
WRK = os.environ.get("BERTH_WRK") or shutil.which("wrk")


def bench(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=10 * PATIENCE, env={**os.environ, **environment}, check=False
    )  # fmt: skip


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="measuring needs two cores")
@pytest.mark.parametrize("part", QUICK)
def test_a_part_measures_and_records(part: str, tmp_path: Path) -> None:
    """In small, against a real server under real load; what it measured is on the page, beside what was there."""
    if part not in ("engine", "holds") and not (WRK and shutil.which("go")):
        pytest.skip("there is no wrk or no Go here, and this part of the bench loads a server with them: apt install wrk golang")
    results = tmp_path / "RESULTS.md"
    results.write_text("# Results\n\nBy hand.\n")
    done = bench(part, "--quick", "--results", str(results))
    assert done.returncode == 0, done.stderr
    assert PARTS[part] in results.read_text()
    assert results.read_text().startswith("# Results\n\nBy hand.\n")
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == (["latency.svg", "stages.svg"] if part == "openloop" else [])


def test_without_wrk_one_line_says_what_to_install(tmp_path: Path) -> None:
    """Not a stack of calls."""
    if shutil.which("go") is None:
        pytest.skip("there is no Go here, which is missed first")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "go").symlink_to(str(shutil.which("go")))
    (tools / "tail").symlink_to(str(shutil.which("tail")))
    done = bench("memory", "--quick", PATH=str(tools), BERTH_WRK="")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "there is no wrk here: apt install wrk" in done.stderr


def test_a_part_that_is_not_there_is_named() -> None:
    """With those that are."""
    done = bench("sevrers", "--quick")
    assert done.returncode == 2
    assert "there is no part sevrers; give of engine, holds, servers" in done.stderr
