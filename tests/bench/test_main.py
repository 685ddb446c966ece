"""``python -m bench``: every question in small, as a process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.counts import PROVE, only_in_prove
from tests.support.module_imports import LAYERS
from tests.testcluster.calls import PATIENCE

ROOT = Path(__file__).parent.parent.parent
QUESTIONS = {
    "holds": "hostile reviews none holds",
    "servers": "| mixed, 16 | Berth |",
    "openloop": "| nine tenths |",
    "policies": "|  | 100 policies |",
    "memory": "resident MB",
    "giant": "| giant, 4 | Berth |",
    "handshakes": "| mixed, 16 at a time | Berth |",
    "replay": "| no two alike |",
    "console": "| /impact |",
}
"""what each writes"""
QUICK = tuple(QUESTIONS) if PROVE else ("servers",)
WRK = os.environ.get("BERTH_WRK") or shutil.which("wrk")


def bench(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=10 * PATIENCE, env={**os.environ, **environment}, check=False
    )  # fmt: skip


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="measuring needs two cores")
@pytest.mark.parametrize("question", QUICK)
def test_a_question_is_answered_and_recorded(question: str, tmp_path: Path) -> None:
    """In small, against a real server under real load; what it measured is on the page, beside what was there."""
    if question != "holds" and not (WRK and shutil.which("go")):
        pytest.skip("there is no wrk or no Go here, and this question loads a server with them: apt install wrk golang")
    results = tmp_path / "RESULTS.md"
    results.write_text("# Results\n\nBy hand.\n")
    done = bench(question, "--quick", "--results", str(results))
    assert done.returncode == 0, done.stderr
    assert QUESTIONS[question] in results.read_text()
    assert results.read_text().startswith("# Results\n\nBy hand.\n")


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


def test_a_question_that_is_not_there_is_named() -> None:
    """With those that are."""
    done = bench("sevrers", "--quick")
    assert done.returncode == 2
    assert "there is no question sevrers; give servers, holds, policies" in done.stderr


def test_ab_needs_another_checkout() -> None:
    """One line says how to name it."""
    done = bench("ab", "--quick")
    assert (done.returncode, done.stderr) == (2, "bench: ab compares two checkouts: name the other one with --other PATH\n")


@only_in_prove
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="measuring needs two cores")
@pytest.mark.skipif(not WRK, reason="there is no wrk here, which loads both: apt install wrk")
def test_ab_compares_two_checkouts(tmp_path: Path) -> None:
    """The other one's code answers, with its own policies. Nothing is recorded. `make test` measures one checkout, by "servers" above, and
    has the words of this question."""
    for layer in LAYERS:
        (tmp_path / layer).symlink_to(ROOT / layer)
    done = bench("ab", "--quick", "--other", str(tmp_path), "--results", str(tmp_path / "RESULTS.md"))
    assert done.returncode == 0, done.stderr
    assert "| cached | this |" in done.stdout
    assert re.search(r"^\|  \| other \|.* \d+\.\d+ \| \d+\.\d+ \|$", done.stdout, re.MULTILINE)
    assert not (tmp_path / "RESULTS.md").exists()
