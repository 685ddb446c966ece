"""Ratios of rounds that ran in turn."""

from __future__ import annotations

import random

import pytest

from bench.measuring.intervals import geometric_mean, ratio


def test_a_machine_that_slows_down_does_not_show() -> None:
    """Both are half as fast in the second round: the ratio of each round is the same."""
    seen = ratio([4000.0, 2000.0, 1000.0], [1000.0, 500.0, 250.0])
    assert (seen.middle, seen.low, seen.high) == pytest.approx((4.0, 4.0, 4.0))


def test_the_interval_holds_the_truth() -> None:
    """Of 200 samples of nine noisy ratios around 2 nine tenths of the intervals hold it (95 % as the rounds grow)."""
    chance = random.Random(7)
    samples = [geometric_mean([2.0 * chance.lognormvariate(0, 0.1) for _ in range(9)]) for _ in range(200)]
    assert sum(one.low <= 2.0 <= one.high for one in samples) >= 170
    assert all(one.low < one.middle < one.high for one in samples)


def test_rounds_must_be_as_many() -> None:
    """A candidate that missed a round has no ratio."""
    with pytest.raises(ValueError, match="shorter"):
        ratio([1.0, 2.0], [1.0])


@pytest.mark.parametrize(("values", "text"), [([3.0], "3.00"), ([12.0], "12.0")], ids=["small", "large"])
def test_one_round_has_no_interval(values: list[float], text: str) -> None:
    """It would pretend to a certainty that one round does not give."""
    assert str(geometric_mean(values)) == text
