"""Reviews per second, latency and memory over kept TLS connections, beside the rivals; the server on one core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.handlers import same_edits
from bench.measuring import intervals
from bench.measuring.candidates import BERTH, CONTROLLER_RUNTIME, NET_HTTP, Server, all_serving
from bench.measuring.setting import Run, Runs, Setting, middle, milliseconds
from tests.support import machine, results_page

LOADS = ("burst", "mixed", "unlike", "plain")
AT_MOST_LOAD = 0.9
"""share of its core that the load generator may take before it is what is measured"""
TIMES_CONTROLLER_RUNTIME, OF_NET_HTTP = 4.0, 0.8


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    yield "One core for the server, another for wrk. Each round runs every candidate in turn; ratios are of rounds, with 95 % intervals."
    yield "CPU is user and system time of the server's process for a call: it says the same on a machine that others use too."
    yield from ("", *(f"- {line}" for line in _loads()), "")
    with all_serving(setting.programs(), setting.cores, setting.folder, stock=True) as servers:
        for load in LOADS:
            same_edits.compare(servers, load, setting.bodies(load), most=20 if setting.scale.quick else 200)
        rows, held = [], []
        for connections, load in _cells(setting):
            runs = setting.in_turn(servers, load, connections, rounds=None if connections == 16 else min(5, setting.scale.rounds))
            rows += list(_rows(f"{load}, {connections}", runs))
            held += list(_held(load, runs)) if connections == 16 and load != "plain" else []
        yield from results_page.table(
            ("load, connections", "who", "reviews/s", "p50 ms", "p99 ms", "CPU us", "Berth's rate to its", "its CPU to Berth's"), rows
        )
        yield from ("", "At 16 connections:", "", *held, "", *_memory(servers))


def _loads() -> Iterator[str]:
    yield "burst: the pods of one Job, which differ in name and uid"
    yield "mixed: 1,000 pods of 60 workloads in 20 namespaces, again and again"
    yield "unlike: no two calls are alike in what decisions read (tolerations, node labels, deadlines): nothing that is remembered helps"
    yield "plain: pods without an accelerator, answered as they came"


def _cells(setting: Setting) -> Iterator[tuple[int, str]]:
    if setting.scale.quick:
        yield from ((16, load) for load in ("mixed", "unlike"))
        return
    yield from ((16, load) for load in LOADS)
    yield from ((connections, load) for connections in (1, 64) for load in ("mixed", "plain"))


def _rows(what: str, runs: Runs) -> Iterator[Sequence[str]]:
    ours = runs[BERTH]
    for name, its in runs.items():
        busy = max(run.load.load_core for run in its)
        note = " (wrk's core is full)" if busy > AT_MOST_LOAD else ""
        cells = [
            f"{middle(its, _rate):,.0f}{note}",
            milliseconds(middle(its, _p50)),
            milliseconds(middle(its, _p99)),
            f"{middle(its, _cpu):.0f}",
        ]
        if name == BERTH:
            cells += ["", ""]
        else:
            cells += [str(ratio(ours, its)), str(_by_cpu(ours, its))]
        yield (what if name == BERTH else "", name, *cells)


def ratio(ours: Sequence[Run], its: Sequence[Run]) -> intervals.Interval:
    """Of rates."""
    return intervals.ratio([run.load.rate for run in ours], [run.load.rate for run in its])


def _by_cpu(ours: Sequence[Run], its: Sequence[Run]) -> intervals.Interval:
    """What the other one takes for a call to what Berth takes."""
    return intervals.ratio([run.cpu for run in its], [run.cpu for run in ours])


def _held(load: str, runs: Runs) -> Iterator[str]:
    """The bars of the issue."""
    if CONTROLLER_RUNTIME in runs:
        its = runs[CONTROLLER_RUNTIME]
        times, p99, p50 = ratio(runs[BERTH], its), middle(runs[BERTH], _p99), middle(its, _p50)
        outcome = f"{times}; by CPU {_by_cpu(runs[BERTH], its)}"
        yield results_page.shown(
            f"{load}: {TIMES_CONTROLLER_RUNTIME:.0f} times controller-runtime", outcome, held=times.middle >= TIMES_CONTROLLER_RUNTIME
        )
        below = f"{milliseconds(p99)} to {milliseconds(p50)} ms"
        yield results_page.shown(f"{load}: p99 below the p50 of controller-runtime", below, held=p99 < p50)
    if NET_HTTP in runs:
        its = runs[NET_HTTP]
        times = ratio(runs[BERTH], its)
        yield results_page.shown(
            f"{load}: {OF_NET_HTTP} of net/http", f"{times}; by CPU {_by_cpu(runs[BERTH], its)}", held=times.middle >= OF_NET_HTTP
        )


def _memory(servers: Sequence[Server]) -> Iterator[str]:
    peaks = ", ".join(f"{server.name} {machine.peak(server.process.pid):.0f} MB" for server in servers)
    yield f"Most memory that was ever resident: {peaks}."


def _rate(run: Run) -> float:
    return run.load.rate


def _p50(run: Run) -> float:
    return run.load.p50


def _p99(run: Run) -> float:
    return run.load.p99


def _cpu(run: Run) -> float:
    return run.cpu
