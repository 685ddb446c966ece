"""Each namespace's share of the event loop: one whose reviews are dear to judge waits for the others, and never the others for it.

Judging is done on the loop, so that a namespace's hostile pods hold up everybody's. Each has a bucket of seconds, which what it costs is
taken from and which time fills again. Where it is empty, and others call, its reviews are answered 503 with ``Retry-After: 1``: the API
server asks again inside its timeout, perhaps another replica. That can't go on for ever, or an entry at Ignore would let the pod pass:
a review that comes again after ``WAIT`` is answered, and not judged (``unread.over_share``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SHARE = 0.25
"""of the loop, for ever: seconds that a bucket gains in a second"""
BURST = 1.0
"""Seconds that a bucket holds: eight hundred pods unlike any before, or twenty of the most hostile."""
DEAR = 0.001
"""Seconds. A review that takes less is not counted: what is kept takes a tenth."""
WAIT = 1.5
"""Seconds that a review is sent away for. The API server tries at 0, 1, 2, 3 and 4 s: the third at the latest is answered here."""
OTHERS = 1.0
"""Seconds that the call of another namespace counts as waiting."""
TOLD = 10.0
"""seconds between two lines of the log about one namespace"""
_MOST = 1_000
"""namespaces, and ten times as many reviews; past it the first is forgotten, which gives it a full bucket, or another wait"""

Turn = Literal["judge", "wait", "answer"]


@dataclass(slots=True)
class _Bucket:
    left: float = BURST
    """seconds; below zero by what the last review took too much"""
    at: float = 0.0
    """when that was so"""
    told: float = float("-inf")

    def now(self, now: float) -> float:
        return min(BURST, self.left + (now - self.at) * SHARE)


class Shares:
    """``now`` is seconds of a monotonic clock in every method."""

    def __init__(self) -> None:
        self._buckets: dict[str, _Bucket] = {}
        self._since: dict[str, float] = {}
        """uid -> when it was first sent away"""
        self._latest: dict[str, float] = {}
        """when a namespace called last, while one is over"""
        self._tight = 0.0

    def __len__(self) -> int:
        return len(self._buckets)

    def tight(self, now: float) -> bool:
        """Whether any namespace may be over its share: only then it matters whose a call is."""
        if now < self._tight:
            return True
        if self._latest:
            self._latest.clear()
        return False

    def spent(self, namespace: str, seconds: float, now: float) -> None:
        """A review of this namespace was judged, until now."""
        bucket = self._buckets.setdefault(namespace, _Bucket(at=now))
        bucket.left, bucket.at = bucket.now(now) - seconds, now
        if bucket.left < 0:
            self._tight = max(self._tight, now - bucket.left / SHARE, now + OTHERS)
        while len(self._buckets) > _MOST:
            del self._buckets[next(iter(self._buckets))]

    def turn(self, namespace: str, uid: str, now: float) -> Turn:
        """What becomes of a call: it is judged, or is to come again, or has waited for long enough. Asked while it is ``tight``."""
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
        """Whether to say that this namespace is over its share: once in a while."""
        bucket = self._buckets.get(namespace)
        if bucket is None or now - bucket.told < TOLD:
            return False
        bucket.told = now
        return True
