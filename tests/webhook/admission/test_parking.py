"""Calls that wait inside Berth: once, for a bounded time, and never more than there is room for."""

from __future__ import annotations

from collections.abc import Callable

from catalog import Catalog
from policies.policy import PolicySet
from tests.support.generators.random_worlds import catalog
from tests.support.snapshots import build
from webhook.admission.parking import MOST, MOST_BYTES, MOST_OF_ONE, WAIT, NotYet, Parking

LAID: Catalog = catalog()
SNAPSHOT = build(PolicySet(policies=(), templates=()), LAID)


class Clock:
    """Timers that run when they are told to."""

    def __init__(self) -> None:
        self.timers: list[Clock.Timer] = []

    class Timer:
        def __init__(self, seconds: float, run: Callable[[], None]) -> None:
            self.seconds = seconds
            self.run = run

        def cancel(self) -> None:
            self.run = lambda: None

    def __call__(self, seconds: float, run: Callable[[], None]) -> Timer:
        self.timers.append(self.Timer(seconds, run))
        return self.timers[-1]

    def ring(self, seconds: float) -> None:
        due, self.timers = self.timers, [timer for timer in self.timers if timer.seconds > seconds]
        for timer in due:
            if timer.seconds <= seconds:
                timer.run()


def parked(parking: Parking, resumed: list[str], namespace: str, *, arrived: bool = False, size: int = 1) -> bool:
    return parking.park(NotYet(namespace, lambda _: arrived), size, lambda: resumed.append(namespace))


def test_a_call_goes_on_after_a_second() -> None:
    """Once, whether anything has arrived or not."""
    clock, resumed = Clock(), list[str]()
    parking = Parking(clock)
    assert parked(parking, resumed, "a")
    parking.resume_arrived(SNAPSHOT)
    clock.ring(0)
    assert (resumed, len(parking)) == ([], 1)
    clock.ring(WAIT)
    assert (resumed, len(parking)) == (["a"], 0)
    clock.ring(10)
    assert resumed == ["a"]


def test_a_call_goes_on_when_what_it_waits_for_has_arrived() -> None:
    """In a turn of its own, and not again after the second."""
    clock, resumed = Clock(), list[str]()
    parking = Parking(clock)
    assert parked(parking, resumed, "a", arrived=True)
    parking.resume_arrived(SNAPSHOT)
    parking.resume_arrived(SNAPSHOT)
    assert resumed == []
    clock.ring(0)
    clock.ring(10)
    assert (resumed, len(parking)) == (["a"], 0)


def test_a_namespace_has_its_places_and_a_replica_its_own() -> None:
    """Whoever has no place is decided at once; a place that is left is free again."""
    clock, resumed = Clock(), list[str]()
    parking = Parking(clock)
    assert [parked(parking, resumed, "a") for _ in range(MOST_OF_ONE + 1)] == [True] * MOST_OF_ONE + [False]
    assert [parked(parking, resumed, f"n{number}") for number in range(MOST)].count(True) == MOST - MOST_OF_ONE
    clock.ring(WAIT)
    assert len(resumed) == MOST
    assert parked(parking, resumed, "a")


def test_the_bodies_that_wait_are_bounded_together() -> None:
    """However few calls they are; what one held is free once it goes on."""
    clock, resumed = Clock(), list[str]()
    parking = Parking(clock)
    assert [parked(parking, resumed, f"n{number}", size=MOST_BYTES // 4) for number in range(5)] == [True] * 4 + [False]
    clock.ring(WAIT)
    assert parked(parking, resumed, "a", size=MOST_BYTES)
