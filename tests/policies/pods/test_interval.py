"""Counts as intervals: how they add up, what is certain of them and what is possible, and what an amount says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.pods.interval import ANY_NUMBER, NONE, ONE, CountInterval, of_amounts

COUNTS = st.builds(
    lambda least, more: CountInterval(least, None if more is None else least + more), st.integers(0, 9), st.none() | st.integers(0, 9)
)
BOUNDS = st.none() | st.integers(0, 12)


def numbers(count: CountInterval) -> set[int]:
    """Every number up to 40 that it may be."""
    return set(range(count.least, (40 if count.most is None else count.most) + 1))


@given(COUNTS, COUNTS)
def test_a_sum_and_the_larger_hold_all_that_may_be(first: CountInterval, second: CountInterval) -> None:
    """Whichever numbers the two are; neither end is wider than it must be."""
    assert {a + b for a in numbers(first) for b in numbers(second) if a + b <= 40} == numbers(first + second)
    assert {max(a, b) for a in numbers(first) for b in numbers(second)} == numbers(first | second)


@given(COUNTS, BOUNDS, BOUNDS)
def test_certain_is_every_number_and_possible_is_some(count: CountInterval, least: int | None, most: int | None) -> None:
    """Within bounds of which either may be absent."""
    inside = [(least is None or n >= least) and (most is None or n <= most) for n in numbers(count)]
    assert count.certainly(least, most) is all(inside)
    assert count.possibly(least, most) is any(inside)


def test_nothing_is_certain_of_what_nobody_can_count() -> None:
    """But that it is no less than nothing."""
    assert ANY_NUMBER.certainly(None, None)
    assert ANY_NUMBER.certainly(0, None)
    assert not ANY_NUMBER.certainly(1, None)
    assert not ANY_NUMBER.certainly(None, 10**30)
    assert ANY_NUMBER.possibly(10**30, None)


@pytest.mark.parametrize(
    ("count", "text"), [(CountInterval(8, 8), "8"), (CountInterval(1, 8), "1 to 8"), (CountInterval(8, None), "at least 8")], ids=str
)
def test_a_count_is_said_in_words(count: CountInterval, text: str) -> None:
    """As sentences use it."""
    assert str(count) == text


@pytest.mark.parametrize(
    ("limit", "request_", "count"),
    [
        (None, None, NONE),
        ("8", None, CountInterval(8, 8)),
        (None, 8, CountInterval(8, 8)),
        ("8", "1", CountInterval(8, 8)),
        ("1", "$GPUS", ONE),
        ("$GPUS", "1", ANY_NUMBER),
        ("500m", None, ONE),
        ("1e3", None, CountInterval(1000, 1000)),
        ("-8", None, ANY_NUMBER),
        (True, None, ANY_NUMBER),
        ([], None, ANY_NUMBER),
        ("0", "8", NONE),
    ],
)
def test_devices_are_counted_by_their_limit(limit: Any, request_: Any, count: CountInterval) -> None:
    """Else by their request, rounded up; a negative amount is none that anybody can read."""
    assert of_amounts(limit, request_) == count


@pytest.mark.parametrize(
    ("limit", "request_", "count"),
    [
        ("8", "1", CountInterval(1, 8)),
        ("1", "8", CountInterval(1, 8)),
        ("8", "8", CountInterval(8, 8)),
        ("8", "$GPUS", CountInterval(0, None)),
        ("8", None, CountInterval(8, 8)),
        (None, "8", CountInterval(8, 8)),
        (None, None, NONE),
    ],
)
def test_where_the_two_may_differ_the_number_lies_between_them(limit: Any, request_: Any, count: CountInterval) -> None:
    """As for DRA's extended resources, of which the API server stores both and the scheduler allocates by one."""
    assert of_amounts(limit, request_, both=True) == count
