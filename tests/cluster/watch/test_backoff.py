"""How long a kind that failed waits."""

from __future__ import annotations

import pytest

from cluster.watch import backoff
from cluster.watch.backoff import Backoff


def test_lists_that_fail_come_ever_more_rarely() -> None:
    """Half a second, doubled up to fifteen, a quarter more or less; forgotten once one works and its watch ends well."""
    one = Backoff()
    pauses = [one.pause(None) for _ in range(8)]
    for pause, wanted in zip(pauses, (0.5, 1, 2, 4, 8, 15, 15, 15), strict=True):
        assert wanted * 0.75 <= pause <= wanted * 1.25
    one.listed()
    assert one.pause(None) < 1


def test_watches_that_break_at_once_come_ever_more_rarely() -> None:
    """Although each list between them works."""
    one = Backoff()
    pauses = []
    for _ in range(6):
        one.listed()
        pauses.append(one.pause(None))
    assert pauses[-1] > 11
    one.listed()
    one.watched()
    assert one.pause(None) < 1


def test_a_watch_that_lasted_is_a_good_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What broke before it does not count."""
    one = Backoff()
    for _ in range(6):
        one.listed()
        one.pause(None)
    monkeypatch.setattr(backoff, "LASTED", 0.0)
    one.listed()
    assert one.pause(None) < 1


def test_what_the_server_asks_for_is_waited_for() -> None:
    """Retry-After counts where it is longer than the pause, up to a minute."""
    assert Backoff().pause(20.0) == 20
    assert Backoff().pause(0.0) > 0.3
    assert Backoff().pause(1e9) == backoff.MOST_ASKED
