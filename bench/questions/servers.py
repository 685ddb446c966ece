"""How fast is Berth beside handlers in Go and Python with the same edits hard-coded? Reviews over TLS, the server on one core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bench.harness import same_edits
from bench.harness.candidates import BERTH, NET_HTTP, beside_rivals
from bench.harness.intervals import ratio
from bench.harness.setting import COMPARISON, BenchSetting, comparison
from tests.support import machine, results_page

LOADS = {
    "burst": "the pods of one Job, which differ in name and uid",
    "mixed": "1,000 pods of 60 workloads in 20 namespaces, again and again: cached",
    "unlike": "all calls differ in what decisions read (tolerations, node labels, deadlines): uncached",
    "plain": "pods without an accelerator, answered as they came",
}
CELLS = (*((16, load) for load in LOADS), *((connections, load) for connections in (1, 64) for load in ("mixed", "plain")))
LEAST = 0.8
"""of the rate of net/http"""


def servers(setting: BenchSetting) -> Iterator[str]:
    """Yield the section on cached, uncached and plain loads."""
    yield "One core for the server, another for wrk. Each round runs every candidate in turn; ratios are of rounds, with 95 % intervals."
    yield "CPU is user and system time of the server's process for a call: it is the same on a machine that others use too."
    yield from ("", *(f"- {load}: {description}" for load, description in LOADS.items()), "")
    rows: list[Sequence[str]] = []
    verdicts: list[str] = []
    with beside_rivals(setting) as candidates:
        cells = setting.pick(CELLS, CELLS[1:2])
        for load in dict.fromkeys(load for _, load in cells):
            same_edits.compare(candidates, load, setting.bodies(load), most=setting.pick(200, 20))
        for connections, load in cells:
            runs = setting.turns(candidates, partial(setting.closed, load=load, connections=connections))
            rows += comparison(f"{load}, {connections}", runs)
            if connections == 16 and load != "plain" and NET_HTTP in runs:
                rate, cpu = ratio(runs[BERTH], runs[NET_HTTP], "rate"), ratio(runs[NET_HTTP], runs[BERTH], "cpu")
                verdicts.append(results_page.shown(f"{load}: {LEAST} of net/http", f"{rate}; by CPU {cpu}", held=rate.middle >= LEAST))
    yield from (*results_page.table(COMPARISON, rows), "", "At 16 connections:", "", *verdicts)


def giant(setting: BenchSetting) -> Iterator[str]:
    """Yield the section on a pod of 3 MiB, the largest that an API server takes."""
    yield f"A training pod of {setting.bodies('giant').stat().st_size / 2**20:.1f} MiB: its configuration is in ten thousand variables."
    yield ""
    with beside_rivals(setting) as candidates:
        same_edits.compare(candidates, "giant", setting.bodies("giant"))
        rows: list[Sequence[str]] = []
        for connections in (1, 4):
            runs = setting.turns(candidates, partial(setting.closed, load="giant", connections=connections, seconds=2))
            rows += comparison(f"giant, {connections}", runs)
        peaks = ", ".join(f"{server.name} {machine.peak(server.pid):.0f} MB" for server in candidates)
    yield from (*results_page.table(COMPARISON, rows), "", f"Largest resident memory: {peaks}.")


def handshakes(setting: BenchSetting) -> Iterator[str]:
    """Yield the section on a new TLS connection for each call, as after every change of the CA and beyond 25 calls at once."""
    yield "One review (load mixed) on each connection: Go's TLS 1.3 without resumption, as the API server (wrk resumes). That client takes"
    yield "as long as a server, so its core bounds the rates: compare the CPU."
    yield ""
    with beside_rivals(setting) as candidates:
        runs = setting.turns(candidates, partial(setting.fresh, load="mixed", connections=16, seconds=setting.pick(2.0, 1.0)))
    yield from results_page.table(COMPARISON, comparison("mixed, 16 at a time", runs))
