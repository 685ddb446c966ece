"""New TLS handshakes per second: a connection for each call, as after every change of the CA and beyond 25 calls at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.load.arrivals import Arrivals, anew
from bench.measuring import intervals
from bench.measuring.candidates import BERTH, Server, all_serving
from bench.measuring.setting import Setting, middle, milliseconds
from tests.support import results_page

CONNECTIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    seen: Arrivals
    cpu: float
    """microseconds of the server for a handshake and a review"""


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    yield f"One review (load mixed) on each connection, {CONNECTIONS} at a time, by bench/load/arrivals: Go's TLS 1.3, no resumption, as"
    yield "the API server (wrk resumes). That client takes as long as a server, so rates are bounded by its core: compare the CPU."
    yield ""
    with all_serving(setting.programs(), setting.cores, setting.folder) as servers:
        runs: dict[str, list[Run]] = {server.name: [] for server in servers}
        for _ in range(min(5, setting.scale.rounds)):
            for server in servers:
                runs[server.name].append(_run(setting, server))
    rows = []
    for name, its in runs.items():
        figures = [f"{middle(its, _rate):,.0f}", milliseconds(middle(its, lambda run: run.seen.at(99))), f"{middle(its, _cpu):.0f}"]
        times = "" if name == BERTH else str(intervals.ratio([run.cpu for run in its], [run.cpu for run in runs[BERTH]]))
        rows.append((name, *figures, times))
    yield from results_page.table(("who", "handshakes and reviews/s", "p99 ms of both", "CPU us", "its CPU to Berth's"), rows)


def _run(setting: Setting, server: Server) -> Run:
    before = server.process.cpu()
    seen = anew(server, setting.bodies("mixed"), setting.cores.load, seconds=1.0 if setting.scale.quick else 2.0, connections=CONNECTIONS)
    return Run(seen=seen, cpu=(server.process.cpu() - before) / seen.calls * 1e6)


def _rate(run: Run) -> float:
    return run.seen.rate


def _cpu(run: Run) -> float:
    return run.cpu
