"""Does the number of policies slow reviews, and does a change of policies hold one up? Policies are read from files."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import orjson

from bench.harness.candidates import berth
from bench.harness.intervals import median, ratio
from bench.harness.setting import PATIENCE, BenchSetting, Candidate, Runs, milliseconds
from bench.inputs import many_policies, workloads
from bench.inputs.bodies import NAMESPACES
from tests.support import machine, results_page
from tests.support.machine import BenchError

NUMBERS = (10, 100, 1_000, 10_000)
BARRED = 1_000
"""policies for which there are bars"""
CONNECTIONS = 16
LEAST = 0.9
"""of the rate at ten policies"""
MOST_HELD_MS = 10.0
LOADS = {"mixed": "spread", "unlike": "unlike_spread"}
RATE = 1_000
"""Calls a second during changes: about a tenth of what a core answers, so that none waits behind others."""
FEW, MANY = 10, 100
"""GPUs for each pod that the changing policy allows, in turn; the watched pod asks for some between."""
QUIET, AROUND = 1.5, 0.3
"""Seconds before a change, for comparison; seconds before and after the first decision by it, in which policies were swapped"""


def run(setting: BenchSetting) -> Iterator[str]:
    """Yield the section."""
    numbers = setting.pick(NUMBERS, NUMBERS[:2])
    yield f"Berth alone, {CONNECTIONS} connections, {NAMESPACES:,} namespaces. {' '.join((many_policies.__doc__ or '').split())}"
    yield ""
    with ExitStack() as stack:
        servers = {number: stack.enter_context(berth(setting, *_options(setting, number), name=f"{number:,}")) for number in numbers}
        rows: list[Sequence[str]] = []
        verdicts: list[str] = []
        for load, file in LOADS.items():
            runs = setting.turns([*servers.values()], partial(setting.closed, load=file, connections=CONNECTIONS))
            rows += _rows(load, runs, [*servers.values()])
            verdicts += _verdict(load, runs) if BARRED in numbers else []
        header = ("load", "policies", "reviews/s", "p50 ms", "p99 ms", "CPU us", "rate to that at 10", "resident MB")
        yield from (*results_page.table(header, rows), "", *verdicts, "")
        yield f"A file of policies is rewritten again and again while {RATE:,} calls a second come at fixed times (mixed). The longest"
        yield "latency of any call, from when it was due: median of the changes, and most."
        yield ""
        rows, verdicts = [], []
        for number in [number for number in numbers if number in (BARRED, numbers[-1])]:
            row, longest = _swaps(setting, servers[number], setting.folder / f"policies-{number}" / "policies")
            rows.append((servers[number].name, *row))
            if number == BARRED:
                claim = f"a swap of {BARRED:,} policies holds no review for more than {MOST_HELD_MS:.0f} ms"
                verdicts.append(results_page.shown(claim, f"{longest:.1f} ms at most", longest <= MOST_HELD_MS))
    moments = ("ms before a change", "ms until it was in force", f"ms within {AROUND} s of the swap")
    yield from (*results_page.table(("policies", "changes", "s until in force", *moments), rows), "", *verdicts)


def _options(setting: BenchSetting, number: int) -> tuple[str, ...]:
    folder = setting.folder / f"policies-{number}"
    folder.mkdir()
    many_policies.write(number, folder)
    return "--policies", str(folder / "policies"), "--facts", str(folder / "namespaces.yaml")


def _rows(load: str, runs: Runs, servers: Sequence[Candidate]) -> Iterator[tuple[str, ...]]:
    for server in servers:
        its = runs[server.name]
        figures = (
            f"{median(its, 'rate'):,.0f}",
            *(milliseconds(median(its, name)) for name in ("p50", "p99")),
            f"{median(its, 'cpu'):.0f}",
        )
        yield load, server.name, *figures, str(ratio(its, runs[servers[0].name], "rate")), f"{machine.resident(server.pid):.0f}"


def _verdict(load: str, runs: Runs) -> Iterator[str]:
    few, many = runs[f"{NUMBERS[0]:,}"], runs[f"{BARRED:,}"]
    rate, cpu = ratio(many, few, "rate"), ratio(few, many, "cpu")
    yield results_page.shown(f"{load}: at {BARRED:,} policies {LEAST} of the rate at ten", f"{rate}; by CPU {cpu}", rate.middle >= LEAST)


def _swaps(setting: BenchSetting, server: Candidate, policies: Path) -> tuple[list[str], float]:
    """Change a policy under load; return cells, and the longest latency around a swap in ms. Raises BenchError if no change acts."""
    load = setting.start(server, "spread", setting.pick(45.0, 6.0), {"rate": RATE})
    review = workloads.recorded("pods-create-train-llama")
    workloads.move(review, many_policies.WATCHED)
    resources = review["request"]["object"]["spec"]["containers"][0]["resources"]
    resources["limits"]["nvidia.com/gpu"] = resources["requests"]["nvidia.com/gpu"] = str((FEW + MANY) // 2)
    time.sleep(1)
    swaps = [_swap(server, policies, orjson.dumps(review), MANY if i % 2 else FEW) for i in range(setting.pick(6, 1)) if load.is_running()]
    calls = load.result().latencies
    if not (swaps := [swap for swap in swaps if swap[-1] + AROUND < calls[-1][0]]):
        raise BenchError("no change of policies was in force before the calls ended")
    spans = [((quiet, written), (written, swapped), (swapped - AROUND, swapped + AROUND)) for quiet, written, swapped in swaps]
    longest = [[max((us for sent, us in calls if since <= sent <= until), default=0.0) / 1e3 for since, until in span] for span in spans]
    cells = (f"{statistics.median(times):.1f}, {max(times):.1f}" for times in zip(*longest, strict=True))
    seconds = statistics.median(swapped - written for _, written, swapped in swaps)
    return [f"{len(swaps)}", f"{seconds:.1f}", *cells], max(times[-1] for times in longest)


def _swap(server: Candidate, policies: Path, review: bytes, most: int) -> tuple[float, float, float]:
    """Change the policy; return when the quiet before it began, when it was written, and when a first decision was made by it."""
    quiet = time.time()
    time.sleep(QUIET)
    written = time.time()
    many_policies.change(policies, most)
    while orjson.loads(server.post(review))["response"]["allowed"] != (most == MANY):
        if time.time() > written + PATIENCE:
            raise BenchError(f"policies that changed were not in force after {PATIENCE} s")
        time.sleep(0.05)
    swapped = time.time()
    time.sleep(AROUND)
    return quiet, written, swapped
