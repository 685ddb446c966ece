"""The control plane is killed, cut off and swallowed, again and again, under load: no pod is without its policies, no replica ends, and
what a replica knows is what is stored a moment after.

In ``make prove`` the figures go into bench/RESULTS.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from random import Random

import pytest

from tests.e2e.faults.figures import FIRST_ATTEMPTS, Fault, Figures
from tests.e2e.faults.load import Load, under_load
from tests.e2e.faults.world import World
from tests.support import results_page
from tests.support.counts import PROVE, count
from tests.testcluster.controlplane import restarting

KILLS, ETCD_KILLS, CUTS, HOLES = count(2, 20), count(1, 10), count(2, 20), count(2, 20)
LONGEST = count(6, 10)
"""seconds for which something is gone, beside what it takes to start"""
GROWS = 16.0
"""MiB: more than what a heap breathes, less than one leak per fault over twenty"""


@pytest.fixture
def figures(world: World) -> Figures:
    """Filled by a test; told at its end."""
    return Figures(resident=[world.resident()])


@pytest.fixture
def load(world: World, figures: Figures) -> Iterator[Load]:
    """While a test runs. Afterwards nothing of it was wrong, and the replica has not grown."""
    with under_load(world.api, world.replica, world.marks) as it:
        yield it
    world.settled(it)
    figures.resident.append(world.resident())
    _record(f"faults: {figures.what}", list(figures.lines(it)))
    world.assert_sound(it)
    assert figures.resident[-1] - figures.resident[0] < GROWS, figures.resident


def _record(name: str, lines: list[str]) -> None:
    print("\n".join(lines))
    if PROVE:
        results_page.write(name, lines)


def lasting(times: int) -> Iterator[float]:
    """Seconds: none, the longest, and any between."""
    chance = Random(7)
    yield from ([0.0, float(LONGEST), LONGEST / 2] + [chance.uniform(0, LONGEST) for _ in range(times)])[:times]


def broken(world: World, load: Load, begin: Callable[[], object], end: Callable[[], object], seconds: float) -> Fault:
    """Policies are written, the fault comes at once and lasts, and as soon as it is over they are written again."""
    world.write()
    begin()
    begun = time.monotonic()
    time.sleep(seconds)
    over = time.monotonic()
    end()
    back = time.monotonic()
    world.write()
    world.settled(load)
    agreed = time.monotonic()
    times = list(world.proxy.connections)
    tried, again = (sum(first < one <= last for one in times) for first, last in ((begun, over), (over, agreed)))
    assert tried <= FIRST_ATTEMPTS + over - begun, f"{tried} connections in {over - begun:.1f} s"
    return Fault(down=over - begun, tried=tried, again=again, agreed=agreed - back)


def test_an_api_server_that_is_killed(world: World, load: Load, figures: Figures) -> None:
    """For a moment or for long: the last policies decide meanwhile, and what was written just before and just after is soon known."""

    def back() -> None:
        if gone:
            status, line = world.readyz()
            assert (status, "the last known objects are used" in line) == (200, True), line
        restarting.start(world.cluster, "kube-apiserver")

    for seconds in lasting(KILLS):
        gone = seconds >= 1
        figures.add("API server killed", broken(world, load, lambda: restarting.kill(world.cluster, "kube-apiserver"), back, seconds))


def test_an_etcd_that_is_killed(world: World, load: Load, figures: Figures) -> None:
    """The API server stays, and can't store anything: as above."""

    def back() -> None:
        restarting.start(world.cluster, "etcd")
        world.until(lambda: world.api.call("GET", "/readyz").ok, lambda: "the API server to be ready again")

    for seconds in lasting(ETCD_KILLS):
        figures.add("etcd killed", broken(world, load, lambda: restarting.kill(world.cluster, "etcd"), back, seconds))


def test_connections_that_are_cut(world: World, load: Load, figures: Figures) -> None:
    """All at once, and some of those that come back too, while policies are written past the replica."""

    def cut() -> None:
        assert world.proxy.cut() > 0

    for number in range(CUTS):

        def again(times: int = number % 3) -> None:
            for _ in range(times):
                time.sleep(0.7)
                world.write()
                world.proxy.cut()

        figures.add("connections cut", broken(world, load, cut, again, 0))


def test_connections_that_carry_nothing(world: World, load: Load, figures: Figures) -> None:
    """Open, and silent both ways. Longer than a watch lasts it is noticed and said; shorter, it is gone unnoticed and nothing is lost."""

    def hole() -> None:
        world.proxy.blackhole()
        world.write()

    def back() -> None:
        if noticed:
            world.says("ClusterGPUPolicy", "the API server", "the last known objects are used")
        world.proxy.blackhole(on=False)

    for seconds in lasting(HOLES):
        noticed = seconds >= LONGEST
        figures.add("connections that carry nothing", broken(world, load, hole, back, seconds))
