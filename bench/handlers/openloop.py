"""Calls at fixed times, at half and at nine tenths of what one core can answer; and where the time of a call goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.handlers import stages
from bench.load.arrivals import Arrivals, Arriving
from bench.measuring import drawing
from bench.measuring.candidates import BERTH, LIBRARY, serving
from bench.measuring.setting import Setting
from tests.support import results_page

SHARES = {"half": 0.5, "nine tenths": 0.9}
CONNECTIONS = 25
"""as many as an API server keeps"""
LATENCY_FILE, STAGES_FILE = "latency.svg", "stages.svg"


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section; two drawings beside the page."""
    capacity, runs = _runs(setting)
    yield f"One core answers {capacity:,.0f} reviews a second (load mixed, 16 connections, closed loop). Then calls come at fixed times"
    yield f"over {CONNECTIONS} connections, whether or not earlier ones were answered; milliseconds from when a call was due."
    yield ""
    rows = []
    for name, seen in runs.items():
        figures = [f"{seen.at(share) / 1000:.2f}" for share in (50, 90, 99, 99.9, 100)]
        rows.append((name, f"{seen.rate:,.0f}", f"{seen.calls:,}", f"{seen.shed:,}", *figures))
    yield from results_page.table(("of capacity", "calls/s", "calls", "shed", "p50", "p90", "p99", "p99.9", "longest"), rows)
    lines = {f"{name} of capacity, {seen.rate:,.0f}/s": seen.percentiles for name, seen in runs.items()}
    yield from _drawn(setting, LATENCY_FILE, drawing.latencies(f"{BERTH}: latency of calls at fixed times, one core, TLS", lines))
    loads = ("mixed",) if setting.scale.quick else ("burst", "mixed", "unlike")
    found = {load: stages.measured(setting, load) for load in loads}
    yield from (
        "",
        "Where the CPU time of one review goes, in microseconds (HTTP: with the event loop, system calls and the log's pipe):",
        "",
    )
    rows = [(load, *(f"{row[stage]:.0f}" for stage in stages.STAGES), f"{sum(row.values()):.0f}") for load, row in found.items()]
    yield from results_page.table(("load", *stages.STAGES, "in all"), rows)
    yield from _drawn(setting, STAGES_FILE, drawing.bars(f"{BERTH}: microseconds of CPU for one review", stages.STAGES, found))


def _runs(setting: Setting) -> tuple[float, dict[str, Arrivals]]:
    """Capacity in reviews a second, and a run at each share of it."""
    quick = setting.scale.quick
    with serving(BERTH, (), setting.cores, setting.folder, "--policies", str(LIBRARY)) as server:
        bodies = setting.bodies("mixed")
        setting.wrk.run(server.url, bodies, connections=16, seconds=1)
        capacity = setting.wrk.run(server.url, bodies, connections=16, seconds=1 if quick else 5).rate
        runs = {}
        for name, share in SHARES.items():
            seconds = 1.5 if quick else 30.0
            arriving = Arriving(server, bodies, setting.cores.load, rate=capacity * share, seconds=seconds, connections=CONNECTIONS)
            runs[name] = arriving.result()
    return capacity, runs


def _drawn(setting: Setting, name: str, svg: str) -> Iterator[str]:
    """Write a drawing and the line that shows it."""
    if setting.drawings.is_dir():
        Path(setting.drawings / name).write_text(svg)
        yield from ("", f"![{name}]({name})")
