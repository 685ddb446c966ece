"""What is made of a world once, by the first page that asks for it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from console.world.world import World

Made = TypeVar("Made")
MOST = 2
"""Worlds whose things are held: the newest, and the one before, of which pages may still be made."""


class Derived(Generic[Made]):
    """One thing for each world."""

    def __init__(self, make: Callable[[World], Made]) -> None:
        self._make = make
        self._lock = Lock()
        self._made: list[tuple[World, Made]] = []

    def of(self, world: World) -> Made:
        """Return that of a world."""
        with self._lock:
            found = next((made for one, made in self._made if one is world), None)
            if found is None:
                found = self._make(world)
                self._made = [(world, found), *self._made[: MOST - 1]]
            return found
