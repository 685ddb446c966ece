"""How often somebody may try a token that nobody has: guessing one is hopeless, but each try is a call to the API server."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

MOST = 5
"""Failed tries of one address at once."""
AGAIN = 6.0
"""Seconds after which one more is free: ten a minute."""
MOST_OF_ALL = 30
"""Failed tries of all addresses together at once."""
AGAIN_OF_ALL = 1.0
ADDRESSES = 4096
"""Addresses that are remembered; the one that tried longest ago is forgotten first."""


class _Bucket:
    """What is left of so many tries, of which one comes back every so many seconds."""

    __slots__ = ("_at", "_every", "_left", "_most")

    def __init__(self, most: int, every: float, now: float) -> None:
        self._most, self._every = most, every
        self._left, self._at = float(most), now

    def wait(self, now: float) -> float:
        """Return how many seconds are left until one is free; 0 if one is."""
        self._left, self._at = min(self._most, self._left + (now - self._at) / self._every), now
        return 0.0 if self._left >= 1 else (1 - self._left) * self._every

    def take(self, number: int) -> None:
        self._left = min(self._most, self._left - number)


class Attempts:
    """Counts tries before they are made, so that many at once are bounded too; one that succeeds is given back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._all = _Bucket(MOST_OF_ALL, AGAIN_OF_ALL, clock())
        self._by_address: OrderedDict[str, _Bucket] = OrderedDict()

    def begin(self, address: str) -> float:
        """Count a try. Returns 0, or how many seconds there are to wait: then it must not be made."""
        now = self._clock()
        own = self._by_address.pop(address, None) or _Bucket(MOST, AGAIN, now)
        self._by_address[address] = own
        if len(self._by_address) > ADDRESSES:
            self._by_address.popitem(last=False)
        wait = max(own.wait(now), self._all.wait(now))
        if not wait:
            own.take(1)
            self._all.take(1)
        return wait

    def give_back(self, address: str) -> None:
        """Take a try back that did not fail."""
        self._all.take(-1)
        if (own := self._by_address.get(address)) is not None:
            own.take(-1)
