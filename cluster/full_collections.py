"""The full collections of the garbage collector, which pause every call, and their postponement while many lasting objects are made."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

NEVER = 10**6
"""The collections of the middle generation between two full ones."""
_LOCK = threading.Lock()
_users = 0
_usual = gc.get_threshold()


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """Postpone full collections until the last of several overlapping uses ends.

    A full collection examines all objects that last, and begins when a quarter of them is new: for 90 ms beside a list of 10,000.
    """
    global _users, _usual
    with _LOCK:
        if not _users:
            _usual = gc.get_threshold()
            gc.set_threshold(*_usual[:2], NEVER)
        _users += 1
    try:
        yield
    finally:
        with _LOCK:
            _users -= 1
            if not _users:
                gc.set_threshold(*_usual)
