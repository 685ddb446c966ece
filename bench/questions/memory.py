"""Does a replica grow? Resident memory after the start, after 100,000 and after 1,000,000 reviews, cached and uncached in turn."""

from __future__ import annotations

from collections.abc import Iterator

from bench.harness.candidates import berth
from bench.harness.setting import BenchSetting
from tests.support import machine, results_page

EARLY, LATE = 100_000, 1_000_000
MOST_MB = 80
GROWTH_MB = 2.0
"""from EARLY to LATE: a thousand calls must not cost 3 KB"""


def run(setting: BenchSetting) -> Iterator[str]:
    yield "Berth with the shipped library, 16 connections, the loads mixed and unlike in turn for three seconds each."
    yield ""
    early, late = setting.pick((EARLY, LATE), (1_000, 3_000))
    with berth(setting) as server:
        points = [(0, machine.resident(server.pid))]
        while points[-1][0] < late:
            calls = sum(setting.closed(server, load, 16, setting.pick(3, 1)).calls for load in ("mixed", "unlike"))
            points.append((points[-1][0] + calls, machine.resident(server.pid)))
        peak = machine.peak(server.pid)
    first = next(point for point in points if point[0] >= early)
    shown = sorted({points[0], first, *points[len(points) // 4 :: max(1, len(points) // 4)], points[-1]})
    yield from results_page.table(("reviews answered", "resident MB"), [(f"{calls:,}", f"{mb:.1f}") for calls, mb in shown])
    yield from ("", f"Largest resident memory: {peak:.1f} MB.", "")
    yield results_page.shown(f"at most {MOST_MB} MB after {early:,} reviews", f"{first[1]:.1f} MB", held=first[1] <= MOST_MB)
    growth = points[-1][1] - first[1]
    yield results_page.shown(f"no growth from there to {late:,}", f"{growth:+.1f} MB", held=growth <= GROWTH_MB)
