"""Does the number of policies slow reviews, and does a change of policies hold one up? Policies are read from files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

import orjson

from bench.harness.candidates import berth
from bench.harness.intervals import ratio
from bench.harness.setting import COMPARISON, PATIENCE, BenchSetting, Candidate, comparison
from bench.inputs import many_policies, workloads
from bench.inputs.bodies import NAMESPACES
from tests.support import machine, results_page
from tests.support.machine import BenchError

NUMBERS = (10, 100, 1_000, 10_000)
BARRED = 1_000
"""policies for which there are bars"""
LEAST = 0.9
"""of the rate at ten policies"""
MOST_HELD_MS = 10.0
LOADS = {"mixed": "spread", "unlike": "unlike_spread"}
RATE = 1_000
"""Calls a second during changes: about a tenth of what a core answers, so that none waits behind others."""
FEW, MANY = 10, 100
"""GPUs for each pod that the changing policy allows, in turn; the watched pod asks for some between."""
AROUND = 0.3
"""Seconds before and after the first decision by a change, in which policies were swapped"""


def run(setting: BenchSetting) -> Iterator[str]:
    numbers, number = setting.pick((NUMBERS, BARRED), (NUMBERS[:2], NUMBERS[1]))
    yield f"Berth alone, {NAMESPACES:,} namespaces. With N policies a namespace has about N/1,250 of its own, and as many of the cluster's"
    yield "select it by its label. About half of those match a training pod."
    yield ""
    rows: list[Sequence[str]] = []
    verdicts: list[str] = []
    with ExitStack() as stack:
        servers = {f"{number:,} policies": stack.enter_context(_serving(setting, number)) for number in numbers}
        for load, file in LOADS.items():
            runs = setting.turns([*servers.values()], partial(setting.closed, load=file, connections=16))
            rows += comparison(f"{load}, 16", runs)
            few, many = runs[f"{numbers[0]:,} policies"], runs[f"{number:,} policies"]
            rate, cpu = ratio(many, few, "rate"), ratio(few, many, "cpu")
            claim = f"{load}: at {number:,} policies {LEAST} of the rate at ten"
            verdicts.append(results_page.shown(claim, f"{rate}; by CPU {cpu}", held=rate.middle >= LEAST))
        memory = ", ".join(f"{name} {machine.resident(server.pid):.0f} MB" for name, server in servers.items())
        swaps = _swaps(setting, servers[f"{number:,} policies"], setting.folder / f"policies-{number}" / "policies")
    header = (*COMPARISON[:-2], "the rate at 10 to its", "its CPU to that at 10")
    yield from (*results_page.table(header, rows), "", f"Resident memory: {memory}.", "", *verdicts, "")
    yield f"A file of policies is rewritten again and again while {RATE:,} calls a second come at fixed times (mixed)."
    yield ""
    cells = [(f"{seconds:.1f}", *(f"{ms:.1f}" for ms in longest)) for seconds, *longest in swaps]
    moments = ("longest ms until then", f"within {AROUND} s of the swap")
    yield from (*results_page.table(("s until in force", *moments), cells), "")
    longest = max(longest[-1] for longest in swaps)
    claim = f"a swap of {number:,} policies holds no review for more than {MOST_HELD_MS:.0f} ms"
    yield results_page.shown(claim, f"{longest:.1f} ms at most", held=longest <= MOST_HELD_MS)


def _serving(setting: BenchSetting, number: int) -> AbstractContextManager[Candidate]:
    folder = setting.folder / f"policies-{number}"
    folder.mkdir()
    many_policies.write(number, folder)
    options = ("--policies", str(folder / "policies"), "--from", str(folder / "namespaces.yaml"))
    return berth(setting, *options, name=f"{number:,} policies")


def _swaps(setting: BenchSetting, server: Candidate, policies: Path) -> list[tuple[float, ...]]:
    """Change a policy under load; return the seconds until each acted, and the longest latencies until and around that in ms."""
    load = setting.start(server, "spread", setting.pick(45.0, 6.0), {"rate": RATE})
    review = workloads.recorded("pods-create-train-llama")
    workloads.move(review, many_policies.WATCHED)
    resources = review["request"]["object"]["spec"]["containers"][0]["resources"]
    resources["limits"]["nvidia.com/gpu"] = resources["requests"]["nvidia.com/gpu"] = str((FEW + MANY) // 2)
    time.sleep(1)
    swaps = [_swap(server, policies, orjson.dumps(review), MANY if i % 2 else FEW) for i in range(setting.pick(6, 1))]
    calls = load.result().latencies

    def longest(since: float, until: float) -> float:
        return max((us for sent, us in calls if since <= sent <= until), default=0.0) / 1e3

    return [(swapped - written, longest(written, swapped), longest(swapped - AROUND, swapped + AROUND)) for written, swapped in swaps]


def _swap(server: Candidate, policies: Path, review: bytes, most: int) -> tuple[float, float]:
    """Change the policy; return when it was written, and when a first decision was made by it."""
    time.sleep(1)
    written = time.time()
    many_policies.change(policies, most)
    while orjson.loads(server.post(review))["response"]["allowed"] != (most == MANY):
        if time.time() > written + PATIENCE:
            raise BenchError(f"policies that changed were not in force after {PATIENCE} s")
        time.sleep(0.05)
    swapped = time.time()
    time.sleep(AROUND)
    return written, swapped
