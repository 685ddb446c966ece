"""What is made of a world, or of its snapshot, once, by the first page that asks for it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar
from weakref import ReferenceType, ref

Of = TypeVar("Of")
Made = TypeVar("Made")
MOST = 2
"""How many have their things held at most: the newest, and the one before while a page is still made of it."""


class Derived(Generic[Of, Made]):
    """One thing for each world, or for each snapshot. What is made must not refer to what it is made of, which would never go then."""

    def __init__(self, make: Callable[[Of], Made]) -> None:
        self._make = make
        self._lock = Lock()
        self._made: list[tuple[ReferenceType[Of], Made]] = []

    def of(self, source: Of) -> Made:
        """Return that of a world, or of a snapshot."""
        with self._lock:
            found = next((made for one, made in self._made if one() is source), None)
            if found is None:
                found = self._make(source)
                self._made = [(ref(source, self._forget), found), *self._made[: MOST - 1]]
            return found

    def _forget(self, gone: ReferenceType[Of]) -> None:
        """Let go of what was made of what nobody reads any more. It takes no lock: it may be called while one is held."""
        self._made = [item for item in self._made if item[0] is not gone]
