"""Ratios with 95 % intervals, from rounds that were run in turn (A B C A B C ...).

The machine is slower in one minute than in the next; two that are measured in the same round meet the same machine, so the
ratio of each round is taken first, and the interval is that of its geometric mean, by the percentile bootstrap.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

RESAMPLES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        digits = 2 if self.middle < 10 else 1
        if self.low == self.high:  # of one round
            return f"{self.middle:.{digits}f}"
        return f"{self.middle:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Of ``ours`` to ``theirs``, round by round. Raises ValueError where the rounds are not as many."""
    return geometric_mean([a / b for a, b in zip(ours, theirs, strict=True)])


def geometric_mean(values: Sequence[float]) -> Interval:
    """Of positive values, with its interval."""
    logs = [math.log(value) for value in values]
    chance = random.Random(len(logs))
    means = sorted(statistics.fmean(chance.choices(logs, k=len(logs))) for _ in range(RESAMPLES))
    low, high = means[int(RESAMPLES * 0.025)], means[int(RESAMPLES * 0.975)]
    return Interval(middle=math.exp(statistics.fmean(logs)), low=math.exp(low), high=math.exp(high))
