"""A least recently used cache, bounded in bytes. ``cachetools`` does the same in twice the time; this runs
in every review."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """Values by key. ``most``: the bytes of all values, by the sizes that callers give."""

    __slots__ = ("_bytes", "_entries", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._entries: dict[Hashable, tuple[Value, int]] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Value | None:
        """Return the value, which is now the most recently used; None if there is none."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._entries[key] = entry
        return entry[0]

    def keep(self, key: Hashable, value: Value, size: int) -> None:
        """Store a value in place of the least recently used ones. ``size``: bytes; a value of more than a
        sixteenth of ``most`` is not stored."""
        if size * 16 > self.most or key in self._entries:
            return
        self._entries[key] = value, size
        self._bytes += size
        while self._bytes > self.most:
            oldest = next(iter(self._entries))
            self._bytes -= self._entries.pop(oldest)[1]

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._bytes = 0
