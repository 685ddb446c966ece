"""Limit failed sign-in attempts, since each is a call to the API server.

Strangers must not keep people from signing in. So tries past the limits wait for their turn, and only those whose turn is too far
away are turned away. Behind a proxy all people have one address; an attacker with IPv6 has as many as they like, of one site.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

MOST = 20
"""Failed tries of one site at once."""
AGAIN = 0.2
"""Seconds after which one more is free: five a second."""
MOST_OF_ALL = 60
"""Failed tries of all sites together at once."""
AGAIN_OF_ALL = 0.05
LONGEST_WAIT = 10.0
"""Seconds that a try waits for its turn; one that would wait longer is not made."""
SITES = 4096
"""Sites that are remembered; the one that tried longest ago is forgotten first."""
_SITE = 48
"""Bits of an IPv6 address that belong to one site at most: https://www.ripe.net/publications/docs/ripe-690"""


class _Bucket:
    """A token bucket; a negative level counts the attempts that wait."""

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
    """Counts tries before they are made, so that many at once are bounded too; one that does not fail is given back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._all = _Bucket(MOST_OF_ALL, AGAIN_OF_ALL, clock())
        self._by_site: OrderedDict[str, _Bucket] = OrderedDict()

    def begin(self, address: str) -> float:
        """Count a try, and return the seconds until its turn. More than ``LONGEST_WAIT``: it is not counted and must not be made."""
        now, site = self._clock(), site_of(address)
        own = self._by_site.pop(site, None) or _Bucket(MOST, AGAIN, now)
        self._by_site[site] = own
        if len(self._by_site) > SITES:
            self._by_site.popitem(last=False)
        wait = max(own.wait(now), self._all.wait(now))
        if wait <= LONGEST_WAIT:
            own.take(1)
            self._all.take(1)
        return wait

    def give_back(self, address: str) -> None:
        """Take a try back that did not fail."""
        self._all.take(-1)
        if (own := self._by_site.get(site_of(address))) is not None:
            own.take(-1)


def site_of(address: str) -> str:
    """Return the site of an address: the IPv4 address, or the first 48 bits of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, _SITE), strict=False))
