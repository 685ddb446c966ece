"""How many recorded reviews `berth replay` judges a second, beside what cannot be saved: reading and decoding them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.load import bodies
from bench.measuring.candidates import LIBRARY
from bench.measuring.setting import Setting
from tests.support import results_page

REVIEWS = {"mixed": 100_000, "unlike": 12_000}
BARS = {"mixed": 20_000, "unlike": 3_000}
"""Reviews a second on two cores that the command is to reach."""
NAMES = {"mixed": "Job-heavy: pods of 60 workloads", "unlike": "no two alike"}
ROUNDS = 5
_DECODE = "import sys, orjson\nfor line in open(sys.argv[1], 'rb'): orjson.loads(line)"


class _Took(NamedTuple):
    seconds: float
    cpu: float
    """seconds of all processes, user and system"""
    mb: float
    """of the largest process"""


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    yield "`berth replay FILE --policies policies/library -o json` as a process, start and end included; AdmissionReviews as JSON lines."
    yield f"Decode: the file, each line by orjson. Medians of {ROUNDS} rounds, in turn. Times: processor time, replay by decode."
    yield ""
    rows, held = [], []
    for load, bar in BARS.items():
        row, reached = _of(setting, load)
        rows.append(row)
        claim = f"{NAMES[load]}: at least {bar:,} reviews/s on two cores"
        held.append(results_page.shown(claim, f"{reached:,.0f}", held=reached >= bar))
    heads = ("recording", "reviews", "KB each", "reviews/s, 2 cores", "1 core", "a core-second of 2", "times decode", "MB, one process")
    yield from results_page.table(heads, rows)
    yield ""
    yield from held


def _of(setting: Setting, load: str) -> tuple[tuple[str, ...], float]:
    count = REVIEWS[load] // (50 if setting.scale.quick else 1)
    file = _recording(setting.folder, load, count)
    commands = {
        "two": _command(file, 2),
        "one": _command(file, 1),
        "decode": [sys.executable, "-c", _DECODE, str(file)],
    }
    rounds: dict[str, list[_Took]] = {name: [] for name in commands}
    for _ in range(1 if setting.scale.quick else ROUNDS):
        for name, command in commands.items():
            cores = {setting.cores.server, setting.cores.load} if name == "two" else {setting.cores.server}
            rounds[name].append(_timed(command, cores))
    seconds = {name: statistics.median(one.seconds for one in took) for name, took in rounds.items()}
    cpu = {name: statistics.median(one.cpu for one in took) for name, took in rounds.items()}
    each = file.stat().st_size / count / 1000
    rate = count / seconds["two"]
    times = cpu["one"] / cpu["decode"]
    mb = max(one.mb for one in rounds["two"])
    rates = (rate, count / seconds["one"], count / cpu["two"])
    return (NAMES[load], f"{count:,}", f"{each:.1f}", *(f"{one:,.0f}" for one in rates), f"{times:.1f}", f"{mb:.0f}"), rate


def _recording(folder: Path, load: str, count: int) -> Path:
    """A file of so many reviews, each with a number that no other has."""
    lines = bodies.written(load, folder).read_bytes().splitlines(keepends=True)
    file = folder / f"recorded-{load}.jsonl"
    with file.open("wb") as out:
        out.writelines(bodies.with_number(lines[number % len(lines)], number) for number in range(count))
    return file


def _command(file: Path, processes: int) -> list[str]:
    words = ["replay", str(file), "--policies", str(LIBRARY), "--platforms", "karpenter-aws", "-o", "json", "--processes", str(processes)]
    return [sys.executable, "-P", "-m", "cli.main", *words]


def _timed(command: list[str], cores: set[int]) -> _Took:
    """Run to its end. Raises CalledProcessError, and ValueError where nothing was judged."""
    begun = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, cores)
    )
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    if out and not json.loads(out)["pods"]:
        raise ValueError(f"nothing was judged by {command}")
    return _Took(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)
