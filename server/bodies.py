"""Bodies that do not arrive in one piece: the memory of each, and the bound on all of them together."""

from __future__ import annotations

SMALL = 4096
"""Bytes up to which a piece is appended to the one before: each separate piece costs some 50 bytes more."""
ROOMY = 16 * 2**10
"""Bytes after which no piece is appended to a buffer: one that grows to megabytes fragments the heap."""
OVERHEAD = 64
"""Bytes that a piece takes beside its content, its place in the list included."""


class BodyMemory:
    """The memory for incomplete bodies. A body that arrives in one piece, as most reviews do, never counts."""

    def __init__(self, most: int) -> None:
        self._free = most

    def has(self, size: int) -> bool:
        """Return whether ``size`` bytes are free."""
        return size <= self._free

    def take(self, size: int) -> bool:
        """Reserve ``size`` bytes; return whether there was room."""
        if size > self._free:
            return False
        self._free -= size
        return True

    def give_back(self, size: int) -> None:
        """Release ``size`` bytes that were reserved."""
        self._free += size


class Pieces:
    """The pieces of one body, in order. Nothing is held once ``add`` has returned False, or after ``drop``."""

    __slots__ = ("_held", "_memory", "_pieces")

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self._pieces: list[bytes | bytearray] = []
        self._held = 0

    def add(self, piece: bytes) -> bool:
        """Append a piece; return whether there was room for it."""
        if not self._memory.take(len(piece) + OVERHEAD):
            self.drop()
            return False
        self._held += len(piece) + OVERHEAD
        last = self._pieces[-1] if self._pieces else b""
        if len(piece) > SMALL:
            self._pieces.append(piece)
        elif isinstance(last, bytearray) and len(last) < ROOMY:
            last += piece
        else:
            self._pieces.append(bytearray(piece))
        return True

    def head(self, size: int) -> bytes:
        """Return the first ``size`` bytes of the body."""
        held, found = iter(self._pieces), b""
        while len(found) < size and (piece := next(held, None)) is not None:
            found += piece[: size - len(found)]
        return found

    def whole(self) -> bytes:
        """Return the whole body and release it."""
        body = b"".join(self._pieces)
        self.drop()
        return body

    def drop(self) -> None:
        """Release the body."""
        self._pieces.clear()
        self._memory.give_back(self._held)
        self._held = 0
