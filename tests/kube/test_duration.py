"""kube.duration: whole seconds, as policies have them. Durations of others are compared with those of Go in tests/kube/upstream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2h", 7200), ("30m", 1800), ("90s", 90), ("1h30m", 5400), ("1.5h", 5400), ("1000ms", 1), ("1m1000000us", 61), ("8784h", 8784 * 3600)],
)
def test_reads(text: str, seconds: int) -> None:
    """Units add up, fractions too."""
    assert duration.seconds(text) == seconds


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1800, "must be a duration with its unit, found the number 1800; write 1800s"),
        ("1800", 'must be a duration; found "1800"; write 2h, 90s or 1h30m'),
        ("2d", 'must be a duration; "2d" has no unit that Go knows; write 48h'),
        ("", 'must be a duration; found ""; write 2h, 90s or 1h30m'),
        ("-2h", 'must be a duration; found "-2h"; write 2h, 90s or 1h30m'),
        (None, "must be a duration; found nothing (null); write 2h, 90s or 1h30m"),
        (True, "must be a duration; found the boolean true; write 2h, 90s or 1h30m"),
        ("0s", 'must be whole seconds, at least 1s; found "0s"'),
        ("1500ms", 'must be whole seconds, at least 1s; found "1500ms"'),
        ("8785h", '"8785h" is more than a year (8784h)'),
        ("1h" * 20, f'must be a duration; found "{"1h" * 20}"; write 2h, 90s or 1h30m'),
    ],
)
def test_denies(value: object, message: str) -> None:
    """Each mistake says what to write."""
    with pytest.raises(duration.DurationError) as denied:
        duration.seconds(value)
    assert str(denied.value) == message


@pytest.mark.parametrize(("seconds", "text"), [(5400, "1h30m"), (90, "1m30s"), (7200, "2h"), (0, "0s"), (86400, "24h")])
def test_text(seconds: int, text: str) -> None:
    """Seconds are shown in the shortest form that people write."""
    assert duration.format_duration(seconds) == text


def test_what_is_too_long_to_be_read_is_the_longest() -> None:
    """Somebody may read it, and we don't; what is no text nobody reads."""
    assert duration.parse_duration(7) is duration.parse_duration(None) is None
    assert duration.parse_duration("1s" * 501) == duration.LONGEST
    assert duration.parse_duration("1s" * 500) == 500


@given(st.integers(0, 10**8))
def test_what_is_written_is_read_back(seconds: int) -> None:
    """By the grammar that Karpenter reads it with."""
    assert duration.parse_duration(duration.format_duration(seconds)) == seconds
