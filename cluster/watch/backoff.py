"""The pause before a kind is listed again after a failure."""

from __future__ import annotations

import random
import time

FIRST, LONGEST = 0.5, 15.0
"""Seconds of a pause: doubled with each failure from the first to the longest."""
JITTER = 0.25
"""Part of a pause by which it varies in both directions: a dozen kinds of a hundred replicas must not retry in
step."""
LASTED = 5.0
"""Seconds after which a watch that breaks counts as good: earlier failures are forgotten."""
MOST_ASKED = 60.0
"""Most seconds of Retry-After that are honoured."""


def jittered(seconds: float) -> float:
    """Return the seconds, varied by up to JITTER."""
    return seconds * random.uniform(1 - JITTER, 1 + JITTER)


def doubled_pause(failures: int, first: float, longest: float) -> float:
    """Return the seconds of a pause after so many earlier failures: doubled with each from ``first`` to ``longest``, varied."""
    return jittered(min(longest, first * 2.0 ** min(failures, 10)))


class Backoff:
    """The failures of one kind.

    Failed lists and broken watches are counted separately, so that a server whose watches all break at once
    is not listed in a tight loop.
    """

    def __init__(self) -> None:
        self._lists = 0
        self._watches = 0
        self._watching = 0.0

    def listed(self) -> None:
        """Record that a list worked; a watch begins."""
        self._lists, self._watching = 0, time.monotonic()

    def watched(self) -> None:
        """Record that a watch ended at its timeout."""
        self._watches = 0

    def pause(self, asked: float | None) -> float:
        """Count a failure and return the seconds to wait. ``asked``: seconds of Retry-After."""
        before = self._watch_failed() if self._watching else self._list_failed()
        return max(doubled_pause(before, FIRST, LONGEST), min(asked or 0.0, MOST_ASKED))

    def _list_failed(self) -> int:
        self._lists += 1
        return self._lists - 1

    def _watch_failed(self) -> int:
        self._watches = 1 if time.monotonic() - self._watching >= LASTED else self._watches + 1
        self._watching = 0.0
        return self._watches - 1
