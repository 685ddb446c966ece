"""What was used last, up to so many bytes. ``cachetools`` does the same in twice the time; this runs in every review."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """Values by key. ``most``: bytes of all of them, as whoever keeps one says."""

    __slots__ = ("_bytes", "_entries", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._entries: dict[Hashable, tuple[Value, int]] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Value | None:
        """The value, which is now the one used last."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._entries[key] = entry
        return entry[0]

    def keep(self, key: Hashable, value: Value, size: int) -> None:
        """In place of those that nobody has used for longest. ``size``: bytes; a value of a sixteenth of all is not kept."""
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
