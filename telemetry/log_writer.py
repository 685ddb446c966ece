"""The output of log lines while calls are answered: a descriptor that may block never delays a call.

A collector that hangs fills a pipe of 64 KiB within a hundred decisions; the next plain write would stop the
event loop, and with it every admission. Here a line that cannot be written waits, up to 1 MiB of them; after
that lines are lost, and counted. So are those that a full disk or a closed pipe denies.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections import deque
from collections.abc import Callable

WAITING = 2**20
"""The most bytes of waiting lines: some thousand decisions."""
PIECE = select.PIPE_BUF
"""Bytes that a pipe takes without blocking when it polls as writable (POSIX write(2)): 4,096 on Linux."""
AGAIN = 0.05
"""Seconds until a descriptor that took nothing is tried again."""


class LogWriter:
    """Writes whole lines in order.

    ``on_loss`` is called for each line that is lost; ``tell`` with their number, once lines are taken again.
    The descriptor's mode stays as it is: making it non-blocking would affect everybody who shares it, a
    terminal's shell too.
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
        """Bytes of all waiting lines."""
        self._written = 0
        """Bytes of the first line that are written."""
        self._torn = False
        """True if part of a line was written and the rest was lost."""
        self._lost = 0

    def write(self, line: bytes) -> None:
        """Write a line, which ends in a newline."""
        if self._bytes >= WAITING:
            self._lose()
            return
        waited = bool(self._lines)
        self._lines.append(line)
        self._bytes += len(line)
        if not waited:
            self._push()

    def close(self) -> None:
        """Write what the descriptor takes now; a collector that hangs is not waited for."""
        while self._lines and self._take_piece():
            pass

    def _push(self) -> None:
        while self._lines:
            if not self._take_piece():
                self._loop.call_later(AGAIN, self._push)
                return

    def _take_piece(self) -> bool:
        """Write a piece of the first line.

        Returns whether the descriptor is done with it: the piece was taken, or the whole line was denied.
        """
        if not self._poll.poll(0):
            return False
        line = b"\n" + self._lines[0] if self._torn else self._lines[0]
        try:
            self._written += os.write(self._descriptor, line[self._written : self._written + PIECE])
        except BlockingIOError:
            return False
        except OSError:  # the disk is full, or the reader is gone
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
