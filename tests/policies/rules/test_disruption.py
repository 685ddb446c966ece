"""Disruption: how a duration is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.cluster_facts import duration_seconds
from policies.rules.disruption import written


@pytest.mark.parametrize(("seconds", "text"), [(43200, "12h"), (5400, "90m"), (90, "90s"), (3600, "1h"), (1, "1s"), (0, "0s")])
def test_a_duration_is_one_number_and_one_unit(seconds: int, text: str) -> None:
    """In the largest unit that is whole."""
    assert written(seconds) == text


@given(st.integers(0, 10**8))
def test_what_is_written_is_read_back(seconds: int) -> None:
    """By the grammar that Karpenter reads it with."""
    assert duration_seconds(written(seconds)) == seconds
