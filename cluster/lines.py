"""The lines of a watch, as they arrive."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cluster.failures import Garbled, TooLarge

MOST = 16 << 20
"""Bytes of one answer or line: etcd takes objects of 1.5 MiB by default, and a list is asked for in pages that are made smaller"""


class Lines:
    """``read()`` gives the next bytes, b"" at the end; what it raises is passed on."""

    def __init__(self, read: Callable[[], Awaitable[bytes]]) -> None:
        self._read = read
        self._begun: list[bytes] = []
        self._length = 0
        self._waiting: list[bytes] = []

    async def batch(self) -> list[bytes]:
        """The lines that came together, without their ends; [] at the end of all. Raises Garbled where that is in the middle of a
        line, TooLarge, and Unreachable where the connection breaks."""
        while chunk := await self._read():
            head, newline, tail = chunk.partition(b"\n")
            self._begun.append(head)
            self._length += len(head)
            if self._length > MOST:
                raise TooLarge(f"a line of more than {MOST >> 20} MiB")
            if newline:
                return self._ended(tail)
        if any(part.strip() for part in self._begun):
            raise Garbled("it ended in the middle of a line")
        return []

    def _ended(self, tail: bytes) -> list[bytes]:
        first = b"".join(self._begun)
        *whole, rest = tail.split(b"\n")
        self._begun, self._length = [rest], len(rest)
        return [first, *whole]

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> bytes:
        """One line."""
        if not self._waiting:
            self._waiting = (await self.batch())[::-1]
        if not self._waiting:
            raise StopAsyncIteration
        return self._waiting.pop()
