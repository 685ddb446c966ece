"""When a certificate is due, and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from certs.authority import issue, make_ca
from certs.renewal_due import renewal_reason

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CA = make_ca(NOW)
LEAF = issue(CA, ("berth.svc", "10.0.0.1"), NOW)


@pytest.mark.parametrize(
    ("names", "after", "reason"),
    [
        pytest.param(("berth.svc", "10.0.0.1"), timedelta(0), None, id="fresh"),
        pytest.param(("10.0.0.1",), timedelta(0), None, id="more-names-than-asked"),
        pytest.param(("berth.svc",), timedelta(days=4), None, id="a-third-left"),
        pytest.param(
            ("berth.svc",), timedelta(days=5), "less than a third of its lifetime is left: it expires on 2026-11-27 12:00Z", id="due"
        ),
        pytest.param(("berth.svc",), timedelta(days=7), "it expired on 2026-11-27 12:00Z", id="at-the-end"),
        pytest.param(("new.svc", "a.svc"), timedelta(0), "it does not name a.svc, new.svc", id="names-missing"),
        pytest.param(("berth.svc",), timedelta(hours=-2), "it is valid only from 2026-11-20 11:00Z", id="clock-stepped-back"),
    ],
)
def test_the_reason(names: tuple[str, ...], after: timedelta, reason: str | None) -> None:
    """Each way to be due has its own sentence; a good certificate has none."""
    found = renewal_reason(LEAF, names, NOW + after)
    assert found == reason or (found is not None and reason is not None and found.startswith(reason))


def test_a_ca_is_asked_without_names() -> None:
    """A year's CA is due after eight months, not after seven."""
    assert renewal_reason(CA, (), NOW + timedelta(days=240)) is None
    assert renewal_reason(CA, (), NOW + timedelta(days=250)) is not None


def test_a_leaf_that_ends_with_its_ca_is_not_due() -> None:
    """A new one would end no later; where its CA goes on, it is due."""
    end = LEAF.certificate.not_valid_after_utc
    assert renewal_reason(LEAF, (), NOW + timedelta(days=6), latest=end) is None
    assert renewal_reason(LEAF, (), NOW + timedelta(days=6), latest=end + timedelta(days=1)) is not None


@pytest.mark.parametrize("life", [timedelta(minutes=5), timedelta(minutes=20), timedelta(hours=1), timedelta(days=7)])
def test_a_fresh_leaf_is_not_due_however_short_its_life(life: timedelta) -> None:
    """That it is dated back by an hour takes nothing from its life; it is due when a third of that is left."""
    leaf = issue(CA, ("berth.svc",), NOW, life=life)
    assert renewal_reason(leaf, (), NOW) is None
    assert renewal_reason(leaf, (), NOW + life * 0.6) is None
    assert renewal_reason(leaf, (), NOW + life * 0.7) is not None
