"""The log: one JSON line per event on stderr, with the time, the level, the event's name and its fields.

Names come from outside: JSON escapes everything that a terminal or a log collector could take for the end of
a line, and long texts are cut. Of a pod only its name and namespace are logged, and what Berth itself would
write: never environment variables, images or commands.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import sys
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import orjson

from documents.printable import cut

if TYPE_CHECKING:
    import asyncio

Level = Literal["info", "warning", "error"]


def write(event: str, level: Level = "info", encoded_fields: bytes = b"", /, **fields: object) -> None:
    """Write ``{"time": ..., "level": ..., "event": ..., **fields}`` as one line. ``encoded_fields``: further
    fields, already ``encoded``."""
    line = encoded({"time": datetime.now(UTC), "level": level, "event": event, **fields})
    _sink((line[:-1] + b"," + encoded_fields[1:] if encoded_fields else line) + b"\n")


def tell(event: str, /, **fields: object) -> None:
    """Write an event of a watch, a writer or a Lease; one with an error is a warning."""
    write(event, "warning" if "error" in fields else "info", **fields)


def to(sink: Callable[[bytes], object]) -> None:
    """Send lines to ``sink`` from now on. Initially they go to standard error, synchronously."""
    global _sink
    _sink = sink


def _to_stderr(line: bytes) -> None:
    with contextlib.suppress(OSError, AttributeError):  # a full disk, or closed: no reason not to serve
        sys.stderr.write(line.decode("ascii"))
        sys.stderr.flush()


_sink: Callable[[bytes], object] = _to_stderr


def encoded(fields: dict[str, Any]) -> bytes:
    """Return the fields as a JSON object in ASCII: U+0085, U+2028 and the C1 controls end lines or steer
    terminals, and orjson does not escape them."""
    line = orjson.dumps(fields, default=str, option=orjson.OPT_UTC_Z)
    if b"\x7f" in line:  # DEL
        line = line.replace(b"\x7f", b"\\u007f")
    return line if line.isascii() else json.dumps(orjson.loads(line), separators=(",", ":")).encode("ascii")


class FromLibraries(logging.Handler):
    """Logs the records of asyncio and other libraries as events: their own output would be plain text on
    standard error, which may hang."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log one event, with the error that was raised."""
        raised = f": {record.exc_info[1]!r}" if record.exc_info else ""
        level: Level = "error" if record.levelno >= logging.ERROR else "warning"
        write("library", level, logger=record.name, text=cut(f"{record.getMessage()}{raised}"))


def take_from_libraries() -> None:
    """Take over the log records of libraries from now on."""
    logging.basicConfig(level=logging.WARNING, handlers=[FromLibraries()], force=True)


def trace(error: Exception) -> str:
    """Return type, message and place of an error, in one line."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    at = f" at {where.tb_frame.f_code.co_filename}:{where.tb_lineno}" if where else ""
    return cut(f"{type(error).__name__}: {error}{at}")


WAITING = 2**20
"""The most bytes of waiting lines: some thousand decisions."""
PIECE = select.PIPE_BUF
"""Bytes that a pipe takes without blocking when it polls as writable (POSIX write(2)): 4,096 on Linux."""
AGAIN = 0.05
"""Seconds until a descriptor that took nothing is tried again."""


class LogWriter:
    """Writes whole lines in order, while calls are answered, to a descriptor that may block.

    A collector that hangs fills a pipe of 64 KiB within a hundred decisions; the next plain write would stop the
    event loop, and with it every admission. Here a line that cannot be written waits, up to 1 MiB of them; after
    that lines are lost, and counted. So are those that a full disk or a closed pipe does not take.

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

        Returns whether the descriptor is done with it: the piece was taken, or the whole line is lost.
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
