"""Suppression of repeated errors in logs: an error that occurs again and again is logged once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class NewErrors:
    """The errors that were logged lately.

    ``most``: how many are remembered; with one, an error is new if it differs from the last. ``again``:
    seconds after which the same error is new once more.
    """

    __slots__ = ("_again", "_clock", "_most", "_since")

    def __init__(self, most: int = 1, again: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._again = again
        self._clock = clock
        self._since: dict[str, float] = {}

    def is_new(self, error: str) -> bool:
        """Return whether to log the error, and remember it."""
        now = self._clock()
        if error in self._since and now - self._since[error] < self._again:
            return False
        if len(self._since) >= self._most:
            self._since.clear()
        self._since[error] = now
        return True

    def forget(self) -> bool:
        """Forget all errors, so that the next one is new, and return whether there was any."""
        had = bool(self._since)
        self._since.clear()
        return had
