"""Many policies: whether their number slows reviews, and whether their change holds one up."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from bench.handlers import swaps
from bench.load import many_policies
from bench.load.bodies import NAMESPACES
from bench.measuring import intervals
from bench.measuring.candidates import BERTH, Server, serving
from bench.measuring.setting import Runs, Setting, middle, milliseconds
from tests.support import machine, results_page

NUMBERS = (10, 100, 1_000, 10_000)
BARRED = 1_000
"""policies for which the issue sets bars"""
CONNECTIONS = 16
LEAST = 0.9
"""of the rate at ten policies"""
MOST_HELD_MS = 10.0
LOADS = {"mixed": "spread", "unlike": "unlike_spread"}


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    numbers = NUMBERS[:2] if setting.scale.quick else NUMBERS
    yield f"{BERTH} alone, {CONNECTIONS} connections, {NAMESPACES:,} namespaces."
    yield " ".join((many_policies.__doc__ or "").split())
    yield ""
    with ExitStack() as stack:
        folders = {number: _folder(setting, number) for number in numbers}
        servers = [stack.enter_context(_serving(setting, number, folder)) for number, folder in folders.items()]
        by_load = {load: setting.in_turn(servers, file, CONNECTIONS) for load, file in LOADS.items()}
        rows = [row for load, runs in by_load.items() for row in _rows(load, runs, servers)]
        yield from results_page.table(
            ("load", "policies", "reviews/s", "p50 ms", "p99 ms", "CPU us", "rate to that at 10", "resident MB"), rows
        )
        yield from ("", *(line for load, runs in by_load.items() for line in _held(load, runs)), "")
        changing = [number for number in numbers if number in (BARRED, numbers[-1])]
        yield from _swaps(setting, {servers[numbers.index(number)]: folders[number] for number in changing})


def _folder(setting: Setting, number: int) -> Path:
    folder = setting.folder / f"policies-{number}"
    folder.mkdir()
    (folder / "tls").symlink_to(setting.folder / "tls")
    many_policies.write(number, folder)
    return folder


def _serving(setting: Setting, number: int, folder: Path) -> AbstractContextManager[Server]:
    options = ("--policies", str(folder / "policies"), "--facts", str(folder / "namespaces.yaml"))
    return serving(_name(number), (), setting.cores, folder, *options)


def _name(number: int) -> str:
    return f"{BERTH} {number:,}"


def _rows(load: str, runs: Runs, servers: Sequence[Server]) -> Iterator[tuple[str, ...]]:
    for server in servers:
        its = runs[server.name]
        rate, cpu = middle(its, lambda run: run.load.rate), middle(its, lambda run: run.cpu)
        figures = [f"{rate:,.0f}", milliseconds(middle(its, lambda run: run.load.p50)), milliseconds(middle(its, lambda run: run.load.p99))]
        resident = f"{machine.resident(server.process.pid):.0f}"
        yield load, server.name.removeprefix(f"{BERTH} "), *figures, f"{cpu:.0f}", str(_to_ten(runs, server.name)), resident


def _to_ten(runs: Runs, name: str) -> intervals.Interval:
    """Its rate to that at ten policies."""
    return intervals.ratio([run.load.rate for run in runs[name]], [run.load.rate for run in runs[_name(NUMBERS[0])]])


def _by_cpu(runs: Runs, name: str) -> intervals.Interval:
    """What a call costs at ten policies to what it costs there."""
    return intervals.ratio([run.cpu for run in runs[_name(NUMBERS[0])]], [run.cpu for run in runs[name]])


def _held(load: str, runs: Runs) -> Iterator[str]:
    if _name(BARRED) in runs:
        times = _to_ten(runs, _name(BARRED))
        yield results_page.shown(
            f"{load}: at {BARRED:,} policies {LEAST} of the rate at ten",
            f"{times}; by CPU {_by_cpu(runs, _name(BARRED))}",
            held=times.middle >= LEAST,
        )


def _swaps(setting: Setting, folders: dict[Server, Path]) -> Iterator[str]:
    yield f"A file of policies is rewritten again and again while {swaps.RATE:,} calls a second come at fixed times (mixed). The longest"
    yield "latency of any call, from when it was due: median of the changes, and most."
    yield ""
    rows, held = [], []
    for server, folder in folders.items():
        seen = swaps.measured(setting, server, folder / "policies")
        row = [f"{statistics.median(times):.1f}, {max(times):.1f}" for times in (seen.quiet, seen.read, seen.swapped)]
        policies = server.name.removeprefix(f"{BERTH} ")
        rows.append((policies, f"{len(seen.seconds)}", f"{statistics.median(seen.seconds):.1f}", *row, f"{seen.shed}"))
        if server.name == _name(BARRED):
            claim = f"a swap of {BARRED:,} policies holds no review for more than {MOST_HELD_MS:.0f} ms"
            held.append(results_page.shown(claim, f"{max(seen.swapped):.1f} ms at most", held=max(seen.swapped) <= MOST_HELD_MS))
    moments = ("ms before a change", "ms until it was in force", "ms within 0.3 s of the swap")
    yield from (*results_page.table(("policies", "changes", "s until in force", *moments, "calls shed"), rows), "", *held)
