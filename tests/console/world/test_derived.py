"""What is made of a world once, and goes with it."""

from __future__ import annotations

import gc
from weakref import ref

from analysis.world.world import World
from console.job.playground import PLAYGROUNDS
from console.world.derived import MOST, Derived
from tests.support.console.worlds import world
from tests.support.recorded import eks


def test_a_thing_is_made_once_for_each_world() -> None:
    """In whatever order they are asked for, as long as no more than so many are."""
    made: list[World] = []

    def make(one: World) -> int:
        made.append(one)
        return len(made)

    worlds, derived = [world(eks.objects()) for _ in range(MOST)], Derived(make)
    assert [derived.of(one) for one in (*worlds, *reversed(worlds))] == [1, 2, 2, 1]


def test_what_was_made_goes_with_its_world() -> None:
    """Nothing is left of a world that no page reads any more, nor the world itself."""
    first = world(eks.objects())
    derived: Derived[World, set[int]] = Derived(lambda _: set())
    made, gone = ref(derived.of(first)), ref(first)
    assert PLAYGROUNDS.of(first).snapshots({}).every is first.snapshot
    del first
    gc.collect()
    assert (made(), gone()) == (None, None)
