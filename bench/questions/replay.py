"""How many recorded reviews does `berth replay` evaluate in a second, beside what cannot be saved: reading and decoding them?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from bench.harness.intervals import in_turn, median
from bench.harness.setting import BenchSetting
from bench.inputs import bodies
from tests.support import results_page
from tests.testcluster.addons.berth import COMMAND, LIBRARY

RECORDINGS = {"mixed": ("Job-heavy: pods of 60 workloads", 100_000, 20_000), "unlike": ("no two alike", 12_000, 3_000)}
"""Load -> its description, how many reviews are recorded, and how many the command must evaluate in a second on two cores"""
ROUNDS = 5
HEADER = ("recording", "reviews", "KB each", "reviews/s, 2 cores", "1 core", "a core-second of 2", "times decode", "MB, one process")
_DECODE = (sys.executable, "-c", "import sys, orjson\nfor line in open(sys.argv[1], 'rb'): orjson.loads(line)")


class ProcessCost(NamedTuple):
    """What a command cost."""

    seconds: float
    cpu: float
    """seconds of all processes, user and system"""
    mb: float
    """of the largest process"""


def run(setting: BenchSetting) -> Iterator[str]:
    """Yield the section."""
    yield "`berth replay FILE --policies policies/library -o json` as a process, start and end included; AdmissionReviews as JSON lines."
    yield f"Decode: the file, each line by orjson. Medians of {ROUNDS} rounds, in turn. Times: processor time, replay by decode."
    yield ""
    rows, verdicts = [], []
    for load, (description, full, bar) in RECORDINGS.items():
        number, file = full // setting.pick(1, 50), setting.folder / f"recorded-{load}.jsonl"
        lines = setting.bodies(load).read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(bodies.with_number(lines[i % len(lines)], i) for i in range(number)))
        words = ["replay", str(file), "--policies", str(LIBRARY), "--platforms", "karpenter-aws", "-o", "json", "--processes"]
        one, both = {setting.cores.server}, {setting.cores.server, setting.cores.load}
        commands = {
            "two": partial(_timed, [*COMMAND, *words, "2"], both), "one": partial(_timed, [*COMMAND, *words, "1"], one),
            "decode": partial(_timed, [*_DECODE, str(file)], one),
        }  # fmt: skip
        costs = in_turn(commands, setting.pick(ROUNDS, 1), warm_up=0)
        rates = [
            number / seconds for seconds in (median(costs["two"], "seconds"), median(costs["one"], "seconds"), median(costs["two"], "cpu"))
        ]
        times, mb = median(costs["one"], "cpu") / median(costs["decode"], "cpu"), max(cost.mb for cost in costs["two"])
        size = f"{file.stat().st_size / number / 1000:.1f}"
        rows.append((description, f"{number:,}", size, *(f"{rate:,.0f}" for rate in rates), f"{times:.1f}", f"{mb:.0f}"))
        claim = f"{description}: at least {bar:,} reviews/s on two cores"
        verdicts.append(results_page.shown(claim, f"{rates[0]:,.0f}", rates[0] >= bar))
    yield from (*results_page.table(HEADER, rows), "", *verdicts)


def _timed(command: list[str], cores: set[int]) -> ProcessCost:
    """Run a command to its end. Raises CalledProcessError, and ValueError if it evaluated nothing."""
    begun = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=partial(os.sched_setaffinity, 0, cores)
    )  # fmt: skip
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    if out and not json.loads(out)["pods"]:
        raise ValueError(f"nothing was evaluated by {command}")
    return ProcessCost(time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)
