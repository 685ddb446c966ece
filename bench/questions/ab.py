"""Is this checkout of Berth faster or slower than another one? Both serve their own shipped policies, loaded in pairs of rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bench.harness.candidates import berth
from bench.harness.setting import COMPARISON, BenchSetting, comparison
from tests.support import results_page
from tests.support.machine import BenchError

LOADS = {"mixed": "cached", "unlike": "uncached", "plain": "plain"}


def run(setting: BenchSetting) -> Iterator[str]:
    """Yield the section. Raises BenchError if no other checkout was named."""
    if setting.other is None or not (setting.other / "cli").is_dir():
        raise BenchError("ab compares two checkouts: name the other one with --other PATH")
    yield f"This checkout beside another; {setting.rounds} pairs of rounds of one second, 16 connections, 95 % intervals."
    yield ""
    rows: list[Sequence[str]] = []
    with berth(setting, name="this") as this, berth(setting, name="other", tree=setting.other) as other:
        for load, description in [*LOADS.items()][: setting.pick(len(LOADS), 1)]:
            rows += comparison(description, setting.turns([this, other], partial(setting.closed, load=load, connections=16)))
    yield from results_page.table(("load", *COMPARISON[1:-2], "reviews/s, this to other", "CPU, other to this"), rows)
