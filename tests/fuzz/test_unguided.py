"""Fuzzing without coverage, for where there is no atheris, and for what its own memory hides: that judging keeps nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.wire import MIB
from tests.support.counts import only_in_prove

ROOT = Path(__file__).parent.parent.parent
BODIES = 200_000
SEED = 31
MAY_GROW = 16 * MIB
"""From the middle to the end"""


@only_in_prove
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc, which only Linux has")
def test_judging_leaves_nothing_behind() -> None:
    """No failure, no hang, and memory that stays once what may be kept is kept.

    ``make test`` has the laws with the guided fuzzer (``test_guided``), and memory over the wire (``test_wire``)."""
    command = [sys.executable, "-m", "tests.fuzz.unguided", str(BODIES), str(SEED)]
    environment = {**os.environ, "PYTHONHASHSEED": str(SEED)}  # mutations are drawn from sets too
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["failures"] == []
    assert result["slowest"] < 1
    assert max(result["resident"][10:]) - result["resident"][10] < MAY_GROW, result["resident"]
