"""Each namespace's share of the event loop: a namespace whose reviews are expensive waits for the others,
never they for it.

Evaluation runs on the loop, so that a namespace's hostile pods delay everybody's. Each namespace has a bucket of
seconds, which evaluating its reviews drains and time refills. While it is empty, and others call, its reviews
wait inside the call (``parking``), after which they are answered, and not evaluated, if it still is
(``unevaluated_reviews.OVER_SHARE``).
"""

from __future__ import annotations

from dataclasses import dataclass

SHARE = 0.25
"""The lasting share of the loop: seconds that a bucket gains per second."""
BURST = 1.0
"""Seconds that a bucket holds: eight hundred pods unlike any before, or twenty of the most hostile."""
DEAR = 0.001
"""Seconds. A review that takes less is not counted: one answered from the cache takes a tenth."""
OTHERS = 1.0
"""Seconds for which a call of another namespace counts as waiting."""
LOG_INTERVAL = 10.0
"""Seconds between two log lines about one namespace."""
_MOST = 1_000
"""The most namespaces that are tracked; beyond it the first is forgotten, which gives it a full bucket."""


@dataclass(slots=True)
class _ShareBucket:
    left: float = BURST
    """Seconds; below zero by what the last review took too much."""
    at: float = 0.0
    """The time at which ``left`` was computed."""
    logged_at: float = float("-inf")

    def now(self, now: float) -> float:
        return min(BURST, self.left + (now - self.at) * SHARE)


class NamespaceShares:
    """``now`` is seconds of a monotonic clock in every method."""

    def __init__(self) -> None:
        self._buckets: dict[str, _ShareBucket] = {}
        self._latest: dict[str, float] = {}
        """The time of each namespace's last call, while any is over its share."""
        self._tight = 0.0

    def __len__(self) -> int:
        return len(self._buckets)

    def is_tight(self, now: float) -> bool:
        """Return whether any namespace may be over its share: only then the namespace of a call matters."""
        if now < self._tight:
            return True
        if self._latest:
            self._latest.clear()
        return False

    def charge(self, namespace: str, seconds: float, now: float) -> None:
        """Charge the namespace for a review that was evaluated until ``now``."""
        bucket = self._buckets.setdefault(namespace, _ShareBucket(at=now))
        bucket.left, bucket.at = bucket.now(now) - seconds, now
        if bucket.left < 0:
            self._tight = max(self._tight, now - bucket.left / SHARE, now + OTHERS)
        while len(self._buckets) > _MOST:
            del self._buckets[next(iter(self._buckets))]

    def is_over(self, namespace: str, now: float) -> bool:
        """Return whether a namespace has had more than its share while others call. Called while ``is_tight``."""
        self._latest[namespace] = now
        bucket = self._buckets.get(namespace)
        return bucket is not None and bucket.now(now) < 0 and self._others(namespace, now)

    def _others(self, namespace: str, now: float) -> bool:
        while len(self._latest) > _MOST:
            del self._latest[next(iter(self._latest))]
        return any(now - at < OTHERS for other, at in self._latest.items() if other != namespace)

    def take_log_turn(self, namespace: str, now: float) -> bool:
        """Return whether to log that this namespace is over its share, which is done at intervals of
        ``LOG_INTERVAL``."""
        bucket = self._buckets.get(namespace)
        if bucket is None or now - bucket.logged_at < LOG_INTERVAL:
            return False
        bucket.logged_at = now
        return True
