"""The lines of a watch, as they arrive."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cluster.client.errors import Garbled, ResponseTooLarge

MOST = 16 << 20
"""Most bytes of one answer or line: etcd accepts objects of 1.5 MiB by default, and lists are requested in
pages, which are made smaller."""


class Lines:
    """The lines of a byte stream. ``read()`` returns the next bytes, b"" at the end; its exceptions are
    passed on."""

    def __init__(self, read: Callable[[], Awaitable[bytes]]) -> None:
        self._read = read
        self._begun: list[bytes] = []
        self._length = 0
        self._waiting: list[bytes] = []

    async def batch(self) -> list[bytes]:
        """Return the lines that arrived together, without line ends; [] at the end of the stream.

        Raises Garbled if the stream ends in the middle of a line, TooLarge, and Unreachable if the connection
        breaks.
        """
        while chunk := await self._read():
            head, newline, tail = chunk.partition(b"\n")
            self._begun.append(head)
            self._length += len(head)
            if self._length > MOST:
                raise ResponseTooLarge(f"a line of more than {MOST >> 20} MiB")
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
        """Return the next line."""
        if not self._waiting:
            self._waiting = (await self.batch())[::-1]
        if not self._waiting:
            raise StopAsyncIteration
        return self._waiting.pop()
