"""Each namespace's share of the event loop: a namespace whose reviews are expensive waits for the others,
never they for it.

Judging runs on the loop, so that a namespace's hostile pods delay everybody's. Each namespace has a bucket of
seconds, which judging its reviews drains and time refills. While it is empty, and others call, its reviews
are answered 503 with ``Retry-After: 1``: the API server asks again inside its timeout, perhaps another
replica. That cannot go on for ever, or with failurePolicy Ignore the pod would pass: a review that is sent
again after ``WAIT`` is answered, and not judged (``unread_reviews.over_share``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SHARE = 0.25
"""The lasting share of the loop: seconds that a bucket gains per second."""
BURST = 1.0
"""Seconds that a bucket holds: eight hundred pods unlike any before, or twenty of the most hostile."""
DEAR = 0.001
"""Seconds. A review that takes less is not counted: one answered from the cache takes a tenth."""
WAIT = 1.5
"""Seconds during which a review is sent away. The API server tries at 0, 1, 2, 3 and 4 s: the third at the
latest is answered here."""
OTHERS = 1.0
"""Seconds for which a call of another namespace counts as waiting."""
LOG_INTERVAL = 10.0
"""Seconds between two log lines about one namespace."""
_MOST = 1_000
"""The most namespaces, and a tenth of the most reviews, that are tracked; beyond it the first is forgotten,
which gives it a full bucket, or another wait."""

Turn = Literal["judge", "wait", "answer"]


@dataclass(slots=True)
class _Bucket:
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
        self._buckets: dict[str, _Bucket] = {}
        self._since: dict[str, float] = {}
        """uid -> the time at which the review was first sent away."""
        self._latest: dict[str, float] = {}
        """The time of each namespace's last call, while any is over its share."""
        self._tight = 0.0

    def __len__(self) -> int:
        return len(self._buckets)

    def tight(self, now: float) -> bool:
        """Return whether any namespace may be over its share: only then the namespace of a call matters."""
        if now < self._tight:
            return True
        if self._latest:
            self._latest.clear()
        return False

    def spent(self, namespace: str, seconds: float, now: float) -> None:
        """Charge the namespace for a review that was judged until ``now``."""
        bucket = self._buckets.setdefault(namespace, _Bucket(at=now))
        bucket.left, bucket.at = bucket.now(now) - seconds, now
        if bucket.left < 0:
            self._tight = max(self._tight, now - bucket.left / SHARE, now + OTHERS)
        while len(self._buckets) > _MOST:
            del self._buckets[next(iter(self._buckets))]

    def turn(self, namespace: str, uid: str, now: float) -> Turn:
        """Return what to do with a call: judge it, let it be sent again, or answer it because it has waited
        long enough.

        Called while it is ``tight``.
        """
        self._latest[namespace] = now
        bucket = self._buckets.get(namespace)
        if bucket is None or bucket.now(now) >= 0 or not self._others(namespace, now):
            return "judge"
        since = self._since.setdefault(uid, now)
        while len(self._since) > 10 * _MOST:
            del self._since[next(iter(self._since))]
        return "wait" if now - since < WAIT else "answer"

    def _others(self, namespace: str, now: float) -> bool:
        while len(self._latest) > _MOST:
            del self._latest[next(iter(self._latest))]
        return any(now - at < OTHERS for other, at in self._latest.items() if other != namespace)

    def tells(self, namespace: str, now: float) -> bool:
        """Return whether to log that this namespace is over its share, which is done at intervals of
        ``LOG_INTERVAL``."""
        bucket = self._buckets.get(namespace)
        if bucket is None or now - bucket.logged_at < LOG_INTERVAL:
            return False
        bucket.logged_at = now
        return True
