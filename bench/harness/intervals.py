"""Run candidates in turn, and compare them round by round with 95 % intervals.

A machine is slower in one minute than in the next. Candidates that are measured in the same round meet the same machine, so their figures
are compared in each round first, and the interval is that of these comparisons, by the percentile bootstrap.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with its 95 % interval."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        digits = 2 if self.middle < 10 else 1
        if self.low == self.high:  # of one round
            return f"{self.middle:.{digits}f}"
        return f"{self.middle:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def in_turn(candidates: Mapping[str, Callable[[], T]], rounds: int, *, warm_up: int = 1) -> dict[str, list[T]]:
    """Return the results of each candidate, run once in every round; the order is reversed in every second round (A B, B A, ...).

    The first ``warm_up`` rounds are not counted.
    """
    results: dict[str, list[T]] = {name: [] for name in candidates}
    for number in range(warm_up + rounds):
        for name in candidates if number % 2 == 0 else reversed([*candidates]):
            result = candidates[name]()
            if number >= warm_up:
                results[name].append(result)
    return results


def figures(runs: Sequence[object], name: str) -> list[float]:
    """Return one figure of every run."""
    return [float(getattr(run, name)) for run in runs]


def median(runs: Sequence[object], name: str) -> float:
    """Return the median of a figure over the rounds."""
    return statistics.median(figures(runs, name))


def ratio(ours: Sequence[object], theirs: Sequence[object], name: str) -> Interval:
    """Return the ratio of a figure, round by round. Raises ValueError if one has more rounds."""
    return geometric_mean([a / b for a, b in zip(figures(ours, name), figures(theirs, name), strict=True)])


def geometric_mean(values: Sequence[float]) -> Interval:
    """Return the geometric mean of positive values."""
    mean = _bootstrap([math.log(value) for value in values], statistics.fmean)
    return Interval(middle=math.exp(mean.middle), low=math.exp(mean.low), high=math.exp(mean.high))


def median_of(values: Sequence[float]) -> Interval:
    """Return the median, which a disturbed round does not move."""
    return _bootstrap(values, statistics.median)


def _bootstrap(values: Sequence[float], statistic: Callable[[Sequence[float]], float]) -> Interval:
    chance = random.Random(len(values))
    resampled = sorted(statistic(chance.choices(values, k=len(values))) for _ in range(2000))
    return Interval(middle=statistic(values), low=resampled[50], high=resampled[1950])
