"""Resource claims that a pod names and that are not known yet: one created together with the pod is about to
arrive, and is waited for.

Such a review is answered 503 with ``Retry-After: 1``, and the API server asks again inside its timeout of 5
s. It must get an answer before that ends, or with failurePolicy Ignore the pod passes: so a replica waits for
a claim once, counted from the first review that names it.
"""

from __future__ import annotations

from collections.abc import Iterable

WAIT = 1.5
"""Seconds to wait. The watch brings a claim within some 20 ms. Of the five tries of one call (at 0, 1, 2, 3
and 4 s) the fourth at the latest reaches one of three replicas for the second time, at least two seconds
after the first, and is answered."""
_MOST = 10_000
"""The most claims; beyond it the oldest is forgotten, which costs its pod another wait."""

Claim = tuple[str, str, str]
"""(namespace, kind, name)."""


class AwaitedClaims:
    """The times at which each missing claim was first asked for."""

    def __init__(self) -> None:
        self._since: dict[Claim, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def waits(self, claims: Iterable[Claim], now: float) -> bool:
        """Return whether one of these claims may still arrive. ``now``: seconds of a monotonic clock."""
        since = [self._since.setdefault(claim, now) for claim in claims]
        while len(self._since) > _MOST:
            del self._since[next(iter(self._since))]
        return any(now - first < WAIT for first in since)
