"""How many recorded reviews does `berth replay` evaluate in a second, against its bars?"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from bench.harness.intervals import median
from bench.harness.setting import BenchSetting
from bench.inputs import bodies
from tests.support import results_page
from tests.testcluster.addons.berth import COMMAND, LIBRARY

RECORDINGS = {"mixed": ("Job-heavy: pods of 60 workloads", 100_000, 20_000), "unlike": ("no two alike", 12_000, 3_000)}
"""Load -> its description, how many reviews are recorded, and how many the command must evaluate in a second on two cores"""


class ProcessCost(NamedTuple):
    """What a command cost: wall and CPU seconds, MB of its largest process."""

    seconds: float
    cpu: float
    mb: float


def run(setting: BenchSetting) -> Iterator[str]:
    yield "`berth replay FILE --policies policies/library -o json` as a process on two cores, start and end included; AdmissionReviews as"
    yield "JSON lines. Medians of rounds."
    yield ""
    rows: list[Sequence[str]] = []
    verdicts: list[str] = []
    for load, (description, full, bar) in RECORDINGS.items():
        number, file = full // setting.pick(1, 50), setting.folder / f"recorded-{load}.jsonl"
        lines = setting.bodies(load).read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(bodies.with_number(lines[i % len(lines)], i) for i in range(number)))
        words = ["--policies", str(LIBRARY), "--platforms", "karpenter-aws", "-o", "json", "--processes", "2"]
        cores = {setting.cores.server, setting.cores.load}
        costs = [_timed([*COMMAND, "replay", str(file), *words], cores) for _ in range(min(5, setting.rounds))]
        rate = number / median(costs, "seconds")
        rows.append((description, f"{number:,}", f"{rate:,.0f}", f"{number / median(costs, 'cpu'):,.0f}", f"{median(costs, 'mb'):.0f}"))
        verdicts.append(results_page.shown(f"{description}: at least {bar:,} reviews/s on two cores", f"{rate:,.0f}", held=rate >= bar))
    yield from (*results_page.table(("recording", "reviews", "reviews/s", "in a core-second", "MB, one process"), rows), "", *verdicts)


def _timed(command: list[str], cores: set[int]) -> ProcessCost:
    """Run a command to its end. Raises CalledProcessError, and ValueError if it evaluated nothing."""
    begun, pin = time.monotonic(), partial(os.sched_setaffinity, 0, cores)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=pin)
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    if not json.loads(out)["pods"]:
        raise ValueError(f"nothing was evaluated by {command}")
    return ProcessCost(time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)
