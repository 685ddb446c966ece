"""Is this checkout of Berth faster or slower than another one? Both serve their own shipped policies, loaded in pairs of rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bench.harness.candidates import berth
from bench.harness.intervals import ratio
from bench.harness.setting import COMPARISON, BenchSetting, comparison
from tests.support import results_page
from tests.support.machine import BenchError

LOADS = {"mixed": "cached", "unlike": "uncached", "plain": "plain"}
CONNECTIONS = 16


def run(setting: BenchSetting) -> Iterator[str]:
    """Yield the section. Raises BenchError if no other checkout was named."""
    if setting.other is None:
        raise BenchError("ab compares two checkouts: name the other one with --other PATH")
    yield f"This checkout beside another; {setting.rounds} pairs of rounds of one second, {CONNECTIONS} connections, 95 % intervals."
    yield ""
    rows: list[Sequence[str]] = []
    ratios: list[str] = []
    with berth(setting, name="this") as this, berth(setting, name="other", tree=setting.other) as other:
        for load, description in LOADS.items():
            runs = setting.turns([this, other], partial(setting.closed, load=load, connections=CONNECTIONS))
            rows += comparison(f"{description}, {CONNECTIONS}", runs)
            rate, cpu = ratio(runs["this"], runs["other"], "rate"), ratio(runs["this"], runs["other"], "cpu")
            ratios.append(f"- {description}: this to other: reviews/s {rate}, CPU for a review {cpu}")
    yield from (*results_page.table(COMPARISON, rows), "", *ratios)
