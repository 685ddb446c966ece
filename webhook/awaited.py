"""Resource claims that a pod names and nobody has seen yet: a claim made in the same breath is on its way here, and is waited for.

Such a review is answered 503 with ``Retry-After: 1``, and the API server asks again inside its timeout of 5 s. It must get an answer
before that ends, or an entry at Ignore lets the pod pass: so a replica waits for a claim once, from when it first heard of it.
"""

from __future__ import annotations

from collections.abc import Iterable

WAIT = 1.5
"""Seconds. The watch brings a claim within some 20 ms. Of the five tries of one call (at 0, 1, 2, 3 and 4 s) the fourth at the latest
reaches one of three replicas for the second time, at least two seconds after the first, and is answered."""
_MOST = 10_000
"""claims; past it the one heard of first is forgotten, which costs its pod another wait"""

Claim = tuple[str, str, str]
"""(namespace, kind, name)"""


class Awaited:
    """When each claim that is not there was first asked for."""

    def __init__(self) -> None:
        self._since: dict[Claim, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def waits(self, claims: Iterable[Claim], now: float) -> bool:
        """Whether one of these claims may still be on its way. ``now``: seconds of a monotonic clock."""
        since = [self._since.setdefault(claim, now) for claim in claims]
        while len(self._since) > _MOST:
            del self._since[next(iter(self._since))]
        return any(now - first < WAIT for first in since)
