"""Bodies that do not come in one piece: what of them is held, and how much all of them may hold together."""

from __future__ import annotations

SMALL = 4096
"""Bytes up to which a piece is copied behind the one before, for each piece of its own costs some 50 more."""
ROOMY = 16 * 2**10
"""Bytes after which a copy is not made longer: what grows to megabytes leaves holes in the heap."""
OVERHEAD = 64
"""bytes of a piece beside what it holds, and of the list"""


class BodyMemory:
    """Bytes for bodies on their way. A body that comes in one piece, as most reviews do, never counts."""

    def __init__(self, most: int) -> None:
        self._free = most

    def has(self, size: int) -> bool:
        """Whether so much is free."""
        return size <= self._free

    def take(self, size: int) -> bool:
        """Whether there was room."""
        if size > self._free:
            return False
        self._free -= size
        return True

    def give_back(self, size: int) -> None:
        """What was taken."""
        self._free += size


class Pieces:
    """Of one body, in order. Nothing is held of it once ``add`` has said no, or after ``drop``."""

    __slots__ = ("_held", "_memory", "_pieces")

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self._pieces: list[bytes | bytearray] = []
        self._held = 0

    def add(self, piece: bytes) -> bool:
        """Whether there was room for it."""
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
        """The first bytes of it."""
        held, found = iter(self._pieces), b""
        while len(found) < size and (piece := next(held, None)) is not None:
            found += piece[: size - len(found)]
        return found

    def whole(self) -> bytes:
        """All of it. Nothing is held of it any more."""
        body = b"".join(self._pieces)
        self.drop()
        return body

    def drop(self) -> None:
        """It is not needed."""
        self._pieces.clear()
        self._memory.give_back(self._held)
        self._held = 0
