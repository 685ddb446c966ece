"""Where the time of a review goes: stages in process by sampling, HTTP and TLS by the CPU that servers take with and without them."""

from __future__ import annotations

import collections
import signal
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

from bench.in_process import engine
from bench.load import bodies
from bench.measuring.candidates import BERTH, LIBRARY, serving
from bench.measuring.setting import Setting, middle
from telemetry.metrics import Metrics
from webhook.admission import handlers

EVERY = 0.0005
"""seconds between samples: enough for ten thousand in five seconds, too few to slow what is sampled"""
CONNECTIONS = 16
_PLAIN = f"{BERTH} without TLS"
IN_PROCESS = ("decode", "look up", "plan", "rules", "encode", "tell")
STAGES = (*IN_PROCESS, "HTTP", "TLS")
_OF_FILE = {
    "projection.py": "look up",
    "decision_cache.py": "look up",
    "lru.py": "look up",
    "json_patch.py": "encode",
    "applied.py": "encode",
    "standing.py": "encode",
    "log_fields.py": "tell",
    "log.py": "tell",
    "metrics.py": "tell",
    "policy_metrics.py": "tell",
}
"""of files of policies/ and webhook/; those of policies/rules are rules, the rest of policies/ is the plan"""
_OF_FUNCTION = {
    ("review.py", "load"): "decode",
    ("review.py", "from_document"): "decode",
    ("review.py", "answer"): "encode",
    ("decision_cache.py", "answer"): "encode",
    ("decision_cache.py", "decided"): "encode",
    ("plan.py", "subject"): "look up",
}


def in_process(setting: Setting, load: str) -> dict[str, float]:
    """Microseconds of each stage of a review, without a network."""
    snapshot, metrics = engine.library(), Metrics("bench")
    metrics.snapshot_swapped(snapshot, 0)
    lines = setting.bodies(load).read_bytes().splitlines()
    sent = (bodies.with_number(line, number) for number, line in enumerate(_for_ever(lines)))
    for body, _ in zip(sent, range(300), strict=False):  # what is remembered after the first ones
        handlers.handle_review("mutate", body, snapshot, metrics)
    samples: collections.Counter[str] = collections.Counter()

    def sample(_: int, frame: FrameType | None) -> None:
        """The next one only once this one is done: on a slow machine they would pile up."""
        samples[_stage(frame)] += 1
        signal.setitimer(signal.ITIMER_REAL, EVERY)

    signal.signal(signal.SIGALRM, sample)
    signal.setitimer(signal.ITIMER_REAL, EVERY)
    times = []
    until = time.perf_counter() + (0.5 if setting.scale.quick else 6)
    while time.perf_counter() < until:
        body = next(sent)
        start = time.perf_counter()
        handlers.handle_review("mutate", body, snapshot, metrics)
        times.append(time.perf_counter() - start)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    known = sum(samples[stage] for stage in IN_PROCESS)
    return {stage: statistics.fmean(times) * 1e6 * samples[stage] / max(1, known) for stage in IN_PROCESS}


def on_the_wire(setting: Setting, load: str) -> tuple[float, float]:
    """Microseconds of CPU of a server for a call over plain HTTP, and over TLS."""
    options = ("--policies", str(LIBRARY))
    plain_program = (sys.executable, "-m", "bench.handlers.without_tls")
    with (
        serving(BERTH, (), setting.cores, setting.folder, *options) as tls,
        serving(_PLAIN, plain_program, setting.cores, setting.folder, *options, tls=False) as plain,
    ):
        runs = setting.in_turn([tls, plain], load, CONNECTIONS, rounds=min(5, setting.scale.rounds))
    return middle(runs[_PLAIN], lambda run: run.cpu), middle(runs[BERTH], lambda run: run.cpu)


def measured(setting: Setting, load: str) -> dict[str, float]:
    """Microseconds of every stage of ``STAGES``."""
    inside = in_process(setting, load)
    plain, tls = on_the_wire(setting, load)
    return {**inside, "HTTP": max(0.0, plain - sum(inside.values())), "TLS": max(0.0, tls - plain)}


def _for_ever(lines: list[bytes]) -> Iterator[bytes]:
    while True:
        yield from lines


def _stage(frame: FrameType | None) -> str:
    """Of the innermost frame that belongs to one."""
    for inner in _frames(frame):
        file = Path(inner.f_code.co_filename)
        stage = _OF_FUNCTION.get((file.name, inner.f_code.co_name)) or _OF_FILE.get(file.name)
        if stage is None and file.parent.name == "rules":
            stage = "rules"
        if stage is None and "policies" in file.parts:
            stage = "plan"
        if stage is not None:
            return stage
    return "encode" if frame is not None and frame.f_code.co_filename.endswith("handlers.py") else "other"


def _frames(frame: FrameType | None) -> Iterable[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
