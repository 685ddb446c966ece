"""Resident memory after the start, after 100,000 and after 1,000,000 reviews, mixed and unlike ones in turn."""

from __future__ import annotations

from collections.abc import Iterator

from bench.measuring.candidates import BERTH, LIBRARY, serving
from bench.measuring.setting import Setting
from tests.support import machine, results_page

EARLY, LATE = 100_000, 1_000_000
MOST_MB = 80
GROWTH_MB = 2.0
"""what counts as growth: a thousand calls must not cost 3 KB"""
CONNECTIONS = 16


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    yield f"{BERTH} with the shipped library, {CONNECTIONS} connections, the loads mixed and unlike in turn for three seconds each."
    yield ""
    early, late = (1_000, 3_000) if setting.scale.quick else (EARLY, LATE)
    with serving(BERTH, (), setting.cores, setting.folder, "--policies", str(LIBRARY)) as server:
        points = [(0, machine.resident(server.process.pid))]
        while points[-1][0] < late:
            calls = sum(_calls(setting, server.url, load) for load in ("mixed", "unlike"))
            points.append((points[-1][0] + calls, machine.resident(server.process.pid)))
        peak = machine.peak(server.process.pid)
    first = next(point for point in points if point[0] >= early)
    shown = [
        points[0],
        first,
        *(point for point in points[len(points) // 4 :: max(1, len(points) // 4)] if point[0] > first[0]),
        points[-1],
    ]
    yield from results_page.table(("reviews answered", "resident MB"), [(f"{calls:,}", f"{mb:.1f}") for calls, mb in sorted(set(shown))])
    yield from ("", f"Most that was ever resident: {peak:.1f} MB.", "")
    yield results_page.shown(f"at most {MOST_MB} MB after {early:,} reviews", f"{first[1]:.1f} MB", held=first[1] <= MOST_MB)
    grown = points[-1][1] - first[1]
    yield results_page.shown(f"no growth from there to {late:,}", f"{grown:+.1f} MB", held=grown <= GROWTH_MB)


def _calls(setting: Setting, url: str, load: str) -> int:
    return setting.wrk.run(url, setting.bodies(load), connections=CONNECTIONS, seconds=1 if setting.scale.quick else 3).calls
