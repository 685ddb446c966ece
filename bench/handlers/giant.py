"""A pod of 3 MiB, the largest that an API server takes: one call at a time, and four at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.handlers import same_edits
from bench.measuring import intervals
from bench.measuring.candidates import BERTH, Server, all_serving
from bench.measuring.setting import Setting, middle, milliseconds
from tests.support import machine, results_page
from tests.support.machine import BenchError


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    size = setting.bodies("giant").stat().st_size
    yield f"A training pod of {size / 2**20:.1f} MiB: its configuration is in some ten thousand environment variables."
    yield ""
    rows = []
    with all_serving(setting.programs(), setting.cores, setting.folder) as servers:
        takers, denied = _takers(servers, setting)
        same_edits.compare(takers, "giant", setting.bodies("giant"))
        for connections in (1, 4):
            runs = setting.in_turn(takers, "giant", connections, rounds=min(3, setting.scale.rounds), times=2)
            for name, its in runs.items():
                figures = [f"{middle(its, lambda run: run.load.rate):.1f}", milliseconds(middle(its, lambda run: run.load.p50))]
                figures += [milliseconds(max(run.load.most for run in its)), f"{middle(its, lambda run: run.cpu) / 1000:.1f}"]
                times = (
                    "" if name == BERTH else str(intervals.ratio([run.load.rate for run in runs[BERTH]], [run.load.rate for run in its]))
                )
                rows.append((f"{connections}" if name == BERTH else "", name, *figures, times))
        peaks = ", ".join(f"{server.name} {machine.peak(server.process.pid):.0f} MB" for server in takers)
    yield from results_page.table(("connections", "who", "reviews/s", "p50 ms", "longest ms", "CPU ms", "Berth's rate to its"), rows)
    yield from ("", f"Most memory that was ever resident: {peaks}.", *denied)


def _takers(servers: Sequence[Server], setting: Setting) -> tuple[list[Server], list[str]]:
    """Those that answer it, and a sentence on each of the others."""
    takers, denied = [], []
    for server in servers:
        try:
            server.post(setting.bodies("giant").read_bytes().rstrip())
        except BenchError as error:
            denied.append(f"Not measured, because it denies such a pod: {error}")
        else:
            takers.append(server)
    return takers, denied
