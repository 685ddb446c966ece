"""Ratios of rounds that ran in turn."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from bench.harness.intervals import geometric_mean, in_turn, ratio


class Round(NamedTuple):
    """What a candidate did in a round."""

    rate: float


def rounds(*rates: float) -> list[Round]:
    return [Round(rate) for rate in rates]


def test_a_machine_that_slows_down_does_not_show() -> None:
    """Both are half as fast in the second round: the ratio of each round is the same."""
    seen = ratio(rounds(4000, 2000, 1000), rounds(1000, 500, 250), "rate")
    assert (seen.middle, seen.low, seen.high) == pytest.approx((4.0, 4.0, 4.0))


def test_the_interval_holds_the_truth() -> None:
    """Of 200 samples of nine noisy ratios around 2 nine tenths of the intervals hold it (95 % as the rounds grow)."""
    chance = random.Random(7)
    samples = [geometric_mean([2.0 * chance.lognormvariate(0, 0.1) for _ in range(9)]) for _ in range(200)]
    assert sum(interval.low <= 2.0 <= interval.high for interval in samples) >= 170
    assert all(interval.low < interval.middle < interval.high for interval in samples)


def test_rounds_must_be_as_many() -> None:
    """A candidate that missed a round has no ratio."""
    with pytest.raises(ValueError, match="shorter"):
        ratio(rounds(1, 2), rounds(1), "rate")


@pytest.mark.parametrize(("values", "text"), [([3.0], "3.00"), ([12.0], "12.0")], ids=["small", "large"])
def test_one_round_has_no_interval(values: list[float], text: str) -> None:
    """It would pretend to a certainty that one round does not give."""
    assert str(geometric_mean(values)) == text


def test_candidates_run_in_turn_and_the_order_alternates() -> None:
    """So that neither is always the one that runs on a warm machine; rounds that warm up do not count."""
    order: list[str] = []

    def run(name: str) -> int:
        order.append(name)
        return len(order)

    results = in_turn({"a": lambda: run("a"), "b": lambda: run("b")}, 2, warm_up=1)
    assert "".join(order) == "abbaab"
    assert results == {"a": [4, 5], "b": [3, 6]}
