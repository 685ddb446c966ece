"""What a count may be, beside the numbers that a policy allows."""

from __future__ import annotations

import pytest

from kube.pod import CountInterval
from policies.rules.device_counts import _all_allowed


@pytest.mark.parametrize(
    ("least", "most", "allowed"),
    [(1, 1, True), (1, 2, True), (0, 2, True), (2, 4, False), (4, 4, True), (0, 10**70, False), (10**70, 10**70, False)],
)
def test_every_number_that_it_may_be_is_among_the_allowed(least: int, most: int, *, allowed: bool) -> None:
    """However many digits an author writes."""
    assert _all_allowed(CountInterval(least, most), most, (1, 2, 4, 8)) is allowed
