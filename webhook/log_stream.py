"""Where log lines go while calls are answered: a descriptor that may stop taking them, without ever holding a call.

A collector that hangs fills a pipe of 64 KiB within a hundred decisions; the next plain write would stop the event loop, and with it
every admission. Here a line that can't be written waits, up to 1 MiB of them; after that lines are lost, and counted. So are those that
a full disk or a closed pipe refuses.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections import deque
from collections.abc import Callable

WAITING = 2**20
"""Bytes of lines that wait: some thousand decisions."""
PIECE = select.PIPE_BUF
"""Bytes that a pipe which says it is writable takes without waiting (POSIX write(2)): 4,096 on Linux."""
AGAIN = 0.05
"""Seconds until a descriptor that took nothing is asked again."""


class LogStream:
    """Writes whole lines in order. ``on_loss`` is told of each line that is lost; ``tell`` how many, once lines are taken again.

    The descriptor stays as it is: to make it non-blocking would make it so for everybody who shares it, a terminal's shell too.
    """

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop, on_loss: Callable[[], None], tell: Callable[[int], None]) -> None:
        self._descriptor = descriptor
        self._loop = loop
        self._on_loss = on_loss
        self._tell = tell
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        """of all lines that wait"""
        self._written = 0
        """of the first of them"""
        self._torn = False
        """part of a line is out whose rest was lost"""
        self._lost = 0

    def write(self, line: bytes) -> None:
        """A line with its end."""
        if self._bytes >= WAITING:
            self._lose()
            return
        waited = bool(self._lines)
        self._lines.append(line)
        self._bytes += len(line)
        if not waited:
            self._push()

    def close(self) -> None:
        """What is taken now is written; a collector that hangs is not waited for."""
        while self._lines and self._take_piece():
            pass

    def _push(self) -> None:
        while self._lines:
            if not self._take_piece():
                self._loop.call_later(AGAIN, self._push)
                return

    def _take_piece(self) -> bool:
        """Whether the descriptor is done with a piece of the first line: taken, or refused with all of its line."""
        if not self._poll.poll(0):
            return False
        line = b"\n" + self._lines[0] if self._torn else self._lines[0]
        try:
            self._written += os.write(self._descriptor, line[self._written : self._written + PIECE])
        except BlockingIOError:
            return False
        except OSError:  # the disk is full, or nobody will ever read
            self._torn = self._torn or self._written > 0
            self._drop_first()
            self._lose()
            return True
        if self._written == len(line):
            self._torn = False
            self._drop_first()
            self._tell_loss()
        return True

    def _drop_first(self) -> None:
        self._bytes -= len(self._lines.popleft())
        self._written = 0

    def _lose(self) -> None:
        self._lost += 1
        self._on_loss()

    def _tell_loss(self) -> None:
        if self._lost and not self._lines:
            lost, self._lost = self._lost, 0
            self._tell(lost)
