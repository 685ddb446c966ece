"""Limit sign-in attempts of tokens not seen before, since each is a call to the API server.

Strangers must not keep people from signing in. So what is past the limits waits in one queue by site: the site with the fewest tries goes
first, and only a try that would wait too long is turned away. Behind a proxy all people have one address, which is one site; an attacker
with IPv6 has as many addresses as they like, of one site.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import ipaddress
import itertools
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

MOST = 60
"""Failed tries of all sites together at once."""
AGAIN = 0.05
"""Seconds after which one more is free: twenty a second."""
AT_ONCE = 8
"""Tries that are checked at a time: a slow API server answers what pages ask for besides."""
_ENOUGH = 0.999
"""Of a try: a timer may ring a moment early."""
LONGEST_WAIT = 10.0
"""Seconds that a try waits for its turn. No more wait than have turns in that time: each keeps a connection."""
SITES = 4096
"""Sites whose tries are counted; the one that tried longest ago is forgotten first."""
_SITE = 48
"""Bits of an IPv6 address that belong to one site at most: https://www.ripe.net/publications/docs/ripe-690"""


@dataclass(order=True, slots=True)
class Try:
    """A try in the queue. The caller sets ``failed`` if the token was invalid; any other try does not count."""

    tries: int
    """Tries of the site before this one: it goes behind sites with fewer."""
    order: int
    """Lower for a later try, which goes first among equals: a crowd that came at once delays nobody who comes after it."""
    turn: asyncio.Future[bool] = field(compare=False)
    failed: bool = field(default=False, compare=False)

    @property
    def has_turn(self) -> bool:
        return self.turn.done() and self.turn.result()


class Attempts:
    """The queue. Tries are counted before they are made, so that many at once are bounded too."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left, self._at = float(MOST), clock()
        self._running = 0
        self._waiting: list[Try] = []
        self._tries: OrderedDict[str, int] = OrderedDict()
        """Tries by site since all tries were free last, those included that were turned away."""
        self._order = itertools.count(0, -1)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def retry_after(self) -> int:
        """Seconds until all that wait have had their turns."""
        return max(1, math.ceil(len(self._waiting) * AGAIN))

    @contextlib.asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[Try]:
        """Wait for the turn of a try, which lasts as long as the context. One without a turn must not be made."""
        site, loop = site_of(address), asyncio.get_running_loop()
        attempt = Try(self._tries.pop(site, 0), next(self._order), loop.create_future())
        self._tries[site] = attempt.tries + 1
        if len(self._tries) > SITES:
            self._tries.popitem(last=False)
        bisect.insort(self._waiting, attempt)
        try:
            self._give_turns()
            await asyncio.wait([attempt.turn], timeout=LONGEST_WAIT)
            yield attempt
        finally:
            if attempt.has_turn:
                self._end(site, attempt)
            elif not attempt.turn.done():
                self._waiting.remove(attempt)

    def _end(self, site: str, attempt: Try) -> None:
        self._running -= 1
        if not attempt.failed:
            self._left += 1
            if site in self._tries:
                self._tries[site] -= 1
        self._give_turns()

    def _give_turns(self) -> None:
        """Give a turn to each try that may be made now, and turn those away for which there is no room."""
        now = self._clock()
        self._left, self._at = min(MOST, self._left + (now - self._at) / AGAIN), now
        while self._waiting and self._left >= _ENOUGH and self._running < AT_ONCE:
            self._waiting.pop(0).turn.set_result(True)
            self._left, self._running = self._left - 1, self._running + 1
        while len(self._waiting) > LONGEST_WAIT / AGAIN:
            self._waiting.pop().turn.set_result(False)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if not self._waiting:
            if self._left == MOST:
                self._tries.clear()
        elif self._running < AT_ONCE:
            self._timer = asyncio.get_running_loop().call_later((1 - self._left) * AGAIN, self._give_turns)


def site_of(address: str) -> str:
    """Return the site of an address: the IPv4 address, or the first 48 bits of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, _SITE), strict=False))
