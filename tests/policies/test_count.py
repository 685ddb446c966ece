"""Counts as intervals: sums, the larger of two, bounds, and the devices of one container."""

from __future__ import annotations

import pytest

from policies.count import ANY_NUMBER, ONE, Count, of_amounts


def test_an_open_end_stays_open() -> None:
    """What nobody can say leaves the lower end as it is."""
    assert Count(8, 8) + ANY_NUMBER == Count(8, None)
    assert Count(8, 8) | ANY_NUMBER == Count(8, None)
    assert Count(1, 4) | Count(2, 3) == Count(2, 4)


@pytest.mark.parametrize(("count", "text"), [(ONE, "1"), (Count(1, 8), "1 to 8"), (Count(8, None), "at least 8")])
def test_a_count_in_words(count: Count, text: str) -> None:
    """One number where there is one."""
    assert str(count) == text


@pytest.mark.parametrize(
    ("count", "least", "most", "certainly", "possibly"),
    [
        (Count(2, 4), 2, 4, True, True),
        (Count(2, 4), 3, None, False, True),
        (Count(2, 4), None, 3, False, True),
        (Count(2, 4), 5, None, False, False),
        (Count(2, 4), None, 1, False, False),
        (Count(2, None), 2, None, True, True),
        (Count(2, None), None, 8, False, True),
        (ANY_NUMBER, None, 0, False, True),
        (ANY_NUMBER, None, None, True, True),
    ],
)
def test_bounds_hold_certainly_or_possibly(count: Count, least: int | None, most: int | None, certainly: bool, possibly: bool) -> None:
    """Every number that it may be, or one."""
    assert (count.certainly(least, most), count.possibly(least, most)) == (certainly, possibly)


@pytest.mark.parametrize(
    ("limit", "request_", "both", "count"),
    [
        ("2", None, False, Count(2, 2)),
        (None, "2", False, Count(2, 2)),
        ("4", "2", False, Count(4, 4)),
        ("4", "2", True, Count(2, 4)),
        (None, None, True, Count(0, 0)),
        ("500m", None, False, Count(1, 1)),
        ("-1", None, False, ANY_NUMBER),
        ("-500m", None, False, ANY_NUMBER),
        ("many", "2", False, ANY_NUMBER),
        ("many", "2", True, Count(0, None)),
    ],
)
def test_the_devices_of_one_container(limit: str | None, request_: str | None, both: bool, count: Count) -> None:
    """By limit, else by request, rounded up; what is below zero or can't be read may be any number."""
    assert of_amounts(limit, request_, both=both) == count
