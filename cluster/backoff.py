"""How long a kind that failed waits before it is listed again."""

from __future__ import annotations

import random
import time

FIRST, LONGEST = 0.5, 15.0
"""Seconds: doubled with each failure from the first to the longest"""
JITTER = 0.25
"""of a pause, more or less: nine kinds of a hundred replicas must not come back in step"""
LASTED = 5.0
"""Seconds after which a watch that breaks was a good one: what broke before it is forgotten"""
MOST_ASKED = 60.0
"""seconds of Retry-After that are honoured"""


def jittered(seconds: float) -> float:
    """A quarter more or less."""
    return seconds * random.uniform(1 - JITTER, 1 + JITTER)


class Backoff:
    """Lists that fail and watches that break are counted apart: a server whose every watch breaks at once is not listed in a circle."""

    def __init__(self) -> None:
        self._lists = 0
        self._watches = 0
        self._watching = 0.0

    def listed(self) -> None:
        """A list worked; from now on it is watched."""
        self._lists, self._watching = 0, time.monotonic()

    def watched(self) -> None:
        """A watch has ended at its own time."""
        self._watches = 0

    def pause(self, asked: float | None) -> float:
        """Seconds, after a failure. ``asked``: Retry-After."""
        before = self._watch_failed() if self._watching else self._list_failed()
        return max(jittered(min(LONGEST, FIRST * 2.0 ** min(before, 10))), min(asked or 0.0, MOST_ASKED))

    def _list_failed(self) -> int:
        self._lists += 1
        return self._lists - 1

    def _watch_failed(self) -> int:
        self._watches = 1 if time.monotonic() - self._watching >= LASTED else self._watches + 1
        self._watching = 0.0
        return self._watches - 1
