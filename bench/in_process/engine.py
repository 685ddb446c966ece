"""What a decision costs in process, beside what cannot be saved: reading the review's JSON and writing an answer."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from analysis.reviews import review
from bench.load.workloads import REVIEWS
from bench.measuring.candidates import LIBRARY
from bench.measuring.setting import Setting
from policies.request import Phase
from policies.state.snapshot import Snapshot
from sources.sources import Sources, load_sources
from telemetry import log
from telemetry.metrics import Metrics
from tests.support import results_page
from webhook.admission import handlers
from webhook.admission.decision_cache import Decisions, none_decided

CALLS = 200
"""of one round: a round takes some 20 ms, so that noise hits whole rounds"""


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    snapshot, metrics = library(), Metrics("bench")
    metrics.snapshot_swapped(snapshot, 0)
    yield f"The shipped library ({len(snapshot.policies)} policies) on karpenter-aws. Microseconds; median of rounds, the three in turn."
    yield "First: a pod unlike any before. Again: one that is alike in what decisions read. Both write a log line and count metrics."
    yield ""
    rows = []
    for file in sorted(REVIEWS.glob("*.json")):
        body = file.read_bytes()
        echoed, first, again = _in_turn(
            setting, [functools.partial(echo, body), _first(file, body, snapshot, metrics), _again(file, body, snapshot, metrics)]
        )
        figures = [f"{len(body)}", f"{echoed:.1f}", f"{first:.1f}", f"{first / echoed:.1f}", f"{again:.1f}", f"{again / echoed:.1f}"]
        rows.append((file.stem, *figures))
    yield from results_page.table(("review", "bytes", "decode + encode", "first", "times", "again", "times"), rows)


def library(policies: Path = LIBRARY, platforms: tuple[str, ...] = ("karpenter-aws",)) -> Snapshot:
    """As ``berth serve --policies ... --platforms ...`` loads it; without platforms every one is in force. From now on nothing is written
    to standard error."""
    log.to(_nowhere)
    return load_sources(Sources(policies=(str(policies),), platforms=platforms)).snapshot


def echo(body: bytes) -> bytes:
    """What every webhook must do: decode, and encode an answer."""
    uid = orjson.loads(body)["request"]["uid"]
    return orjson.dumps({"apiVersion": review.API_VERSION, "kind": review.KIND, "response": {"uid": uid, "allowed": True}})


def judge(file: Path, body: bytes, snapshot: Snapshot, metrics: Metrics, decisions: Decisions | None = None) -> bytes:
    """What ours does between the bytes, on the path that such a review is sent to. ``decisions``: those made before."""
    if not file.name.startswith("pods-"):
        return handlers.advise_workload(body, snapshot, metrics)[1]
    phase: Phase = "validate" if file.name.startswith("pods-update") else "mutate"
    return handlers.handle_review(phase, body, snapshot, metrics, decisions=decisions)[1]


def _first(file: Path, body: bytes, snapshot: Snapshot, metrics: Metrics) -> Callable[[], object]:
    def call() -> None:
        judge(file, body, snapshot, metrics, none_decided())

    return call


def _again(file: Path, body: bytes, snapshot: Snapshot, metrics: Metrics) -> Callable[[], object]:
    return functools.partial(judge, file, body, snapshot, metrics, none_decided())


def _in_turn(setting: Setting, calls: list[Callable[[], object]]) -> list[float]:
    """Median microseconds of each."""
    rounds: list[list[float]] = [[] for _ in calls]
    for _ in range(setting.scale.rounds * 2 + 1):
        for call, times in zip(calls, rounds, strict=True):
            call()
            start = time.perf_counter()
            for _ in range(10 if setting.scale.quick else CALLS):
                call()
            times.append((time.perf_counter() - start) / (10 if setting.scale.quick else CALLS) * 1e6)
    return [statistics.median(times) for times in rounds]


def _nowhere(line: bytes) -> None:
    """A sink for the log: what the pipe behind it costs is measured with the server."""
