"""The queue of sign-in attempts, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable

import pytest

from console.access.attempts import AGAIN, AT_ONCE, LONGEST_WAIT, MOST, SITES, Attempts, site_of
from tests.support import virtual_time
from tests.support.counts import count, only_in_prove


class Queue:
    """Tries by time: when each that failed had its turn. ``seconds``: of one call to the API server."""

    def __init__(self, clock: Callable[[], float], seconds: float = 0.0) -> None:
        self.clock, self._seconds = clock, seconds
        self._attempts = Attempts(clock)
        self.turns: list[float] = []
        self.running = self.most_running = 0

    async def fails(self, address: str, *, failed: bool = True) -> float | None:
        """Try an invalid token; return the seconds until its turn, None if it was turned away."""
        began = self.clock()
        async with self._attempts.turn(address) as attempt:
            if not attempt.has_turn:
                return None
            attempt.failed, waited = failed, self.clock() - began
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            self.turns += [self.clock()] * failed
            await asyncio.sleep(self._seconds)
            self.running -= 1
        return waited

    async def signs_in(self, address: str) -> float | None:
        """Try a valid token; return as above."""
        return await self.fails(address, failed=False)

    async def strangers(self, sites: int, pause: float) -> None:
        """Let each of so many sites have ten tries under way, each made again after a pause, for ever."""

        async def stranger(site: int) -> None:
            await asyncio.sleep(pause * site / sites)
            while True:
                await self.fails(f"2001:db8:{site:x}::1")
                await asyncio.sleep(pause)

        await asyncio.gather(*(stranger(site) for site in range(sites) for _ in range(10)))

    @property
    def is_bounded(self) -> bool:
        """True if so many calls were made at once and a second, and no more: from each turn on until each later one."""
        rates = [number - turn / AGAIN for number, turn in enumerate(self.turns)]
        return all(rate - least < MOST + 0.1 for rate, least in zip(rates, itertools.accumulate(rates, min), strict=True))


@pytest.mark.parametrize("sites", [1, 50, *(pytest.param(sites, marks=only_in_prove) for sites in (4, 1000))])
@pytest.mark.parametrize("seconds", [0.0, 1.0], ids=["fast API server", "slow API server"])
def test_sites_that_try_more_than_all_may_keep_nobody_from_signing_in(sites: int, seconds: float) -> None:
    """People of sites that have tried less go first, a token that they paste wrong included, and the API server is called no more often.
    ``make test`` has one site, and more than may wait."""

    async def scenario(clock: Callable[[], float]) -> None:
        queue = Queue(clock, seconds)
        strangers = asyncio.create_task(queue.strangers(sites, pause=max(0.1, sites / 100)))
        await asyncio.sleep(20)
        waits = []
        for person in range(10):
            waits.append(await queue.fails(f"10.0.0.{person}"))
            waits.append(await queue.signs_in(f"10.0.0.{person}"))
            await asyncio.sleep(1)
        strangers.cancel()
        assert [wait for wait in waits if wait is None or wait > LONGEST_WAIT / 4] == []
        assert queue.is_bounded
        assert queue.most_running <= AT_ONCE
        assert len(queue.turns) > (clock() - 1) * min(1 / AGAIN, AT_ONCE / seconds if seconds else MOST) * 0.9

    virtual_time.run(scenario)


@pytest.mark.parametrize(
    ("strangers", "person"),
    [
        (lambda second: ["10.0.0.7"], "10.0.0.7"),
        (lambda second: ["10.0.0.7"] * 3, "10.0.0.7"),
        (lambda second: ["10.0.0.7"] * 15, "10.0.0.7"),
        (lambda second: [f"2001:db8:0:{second:x}::{number:x}" for number in range(50)], "10.0.0.9"),
        (lambda second: [f"2001:db8:{second:x}::{number:x}" for number in range(3)], "2001:db8:ffff::9"),
        (lambda second: [f"198.51.{second % 256}.{number}" for number in range(15)], "10.0.0.9"),
    ],
    ids=[
        "behind one address",
        "more of them",
        "many",
        "from the networks of one site",
        "from ever new sites",
        "from ever new IPv4 addresses",
    ],
)
def test_strangers_keep_nobody_from_signing_in(strangers: Callable[[int], Iterable[str]], person: str) -> None:
    """Neither from the address of an Ingress nor from addresses that tried nothing before: a person waits for a try or two."""

    async def scenario(clock: Callable[[], float]) -> None:
        queue = Queue(clock)
        async with asyncio.TaskGroup() as tries:
            for second in range(count(80, 600)):
                for address in strangers(second):
                    tries.create_task(queue.fails(address))
                await asyncio.sleep(0.5)
                if second % 5 == 4:
                    wait = await queue.signs_in(person)
                    assert wait is not None
                    assert wait <= 2 * AGAIN
                await asyncio.sleep(second + 1 - clock())

    virtual_time.run(scenario)


def test_a_crowd_of_new_sites_delays_nobody_who_comes_later() -> None:
    """As many sites as fill the queue, each with its first try, are behind the first try of a person."""

    async def scenario(clock: Callable[[], float]) -> None:
        queue = Queue(clock)
        crowd = [asyncio.create_task(queue.fails(f"2001:db8:{site:x}::1")) for site in range(1000)]
        await asyncio.sleep(1)
        wait = await queue.signs_in("10.0.0.9")
        assert wait is not None
        assert wait <= 2 * AGAIN
        await asyncio.gather(*crowd)

    virtual_time.run(scenario)


def test_tries_of_all_addresses_are_bounded_together() -> None:
    """Also where each tries once; those that did not fail are given back, and those that are turned away cost nothing."""

    async def scenario(clock: Callable[[], float]) -> None:
        queue = Queue(clock)
        assert [await queue.signs_in(f"good-{number}") for number in range(2 * MOST)] == [0.0] * 2 * MOST
        waits = await asyncio.gather(*(queue.fails(str(number)) for number in range(2 * SITES)))
        made = [wait for wait in waits if wait is not None]
        assert sum(wait == 0 for wait in made) == MOST
        assert len(made) == LONGEST_WAIT / AGAIN + AT_ONCE
        assert queue.is_bounded
        assert len(queue._attempts._tries) <= SITES
        assert not queue._attempts._waiting

    virtual_time.run(scenario)


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2::3", "2001:db8:1::/48"),
        ("2001:db8:1:ffff::", "2001:db8:1::/48"),
        ("fe80::1%eth0", "fe80::/48"),
        ("", ""),
        ("no address", "no address"),
    ],
)
def test_the_addresses_of_one_site_count_as_one(address: str, site: str) -> None:
    """Whoever has one IPv6 address has more than can be counted."""
    assert site_of(address) == site
