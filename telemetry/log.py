"""The log: one JSON line per event on stderr, with the time, the level, the event's name and its fields.

Names come from outside: JSON escapes everything that a terminal or a log collector could take for the end of
a line, and long texts are cut. Of a pod only its name and namespace are logged, and what Berth itself would
write: never environment variables, images or commands.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from documents.printable import cut

Level = Literal["info", "warning", "error"]


def write(event: str, level: Level = "info", encoded_fields: bytes = b"", /, **fields: object) -> None:
    """Write ``{"time": ..., "level": ..., "event": ..., **fields}`` as one line. ``encoded_fields``: further
    fields, already ``encoded``."""
    line = encoded({"time": datetime.now(UTC), "level": level, "event": event, **fields})
    _sink((line[:-1] + b"," + encoded_fields[1:] if encoded_fields else line) + b"\n")


def log_event(event: str, /, **fields: Any) -> None:
    """Log an event of a watch, a writer or a Lease: a warning if it has an error."""
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
