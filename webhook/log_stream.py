"""Where log lines go while calls are answered: a descriptor that may stop taking them, without ever holding a call.

A collector that hangs fills a pipe of 64 KiB within a hundred decisions; the next plain write would stop the event loop, and with it
every admission. Here a line that can't be written waits, up to 1 MiB of them; after that lines are dropped, and counted.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable

WAITING = 2**20
"""Bytes of lines that wait: some thousand decisions."""
PIECE = select.PIPE_BUF
"""Bytes that a pipe which says it is writable takes without waiting (POSIX write(2)): 4,096 on Linux."""
AGAIN = 0.05
"""Seconds until a descriptor that took nothing is asked again."""


class LogStream:
    """Writes whole lines in order. ``on_drop`` is told how many lines were lost, once lines are taken again.

    The descriptor stays as it is: to make it non-blocking would make it so for everybody who shares it, a terminal's shell too.
    """

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop, on_drop: Callable[[int], None]) -> None:
        self._descriptor = descriptor
        self._loop = loop
        self._on_drop = on_drop
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._waiting = bytearray()
        self._dropped = 0

    def write(self, line: str) -> None:
        """A line with its end."""
        if not self._waiting:
            self._waiting += line.encode()
            self._push()
        elif len(self._waiting) < WAITING:
            self._waiting += line.encode()
        else:
            self._dropped += 1

    def close(self) -> None:
        """What is taken now is written; a collector that hangs is not waited for."""
        while self._waiting and self._take_piece():
            pass

    def _push(self) -> None:
        while self._waiting:
            if not self._take_piece():
                self._loop.call_later(AGAIN, self._push)
                return
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._on_drop(dropped)

    def _take_piece(self) -> bool:
        """Whether the descriptor took some. One that is closed at the other end takes all, into nothing."""
        if not self._poll.poll(0):
            return False
        try:
            del self._waiting[: os.write(self._descriptor, self._waiting[:PIECE])]
        except BlockingIOError:
            return False
        except OSError:
            self._waiting.clear()
        return True
