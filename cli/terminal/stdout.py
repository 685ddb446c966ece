"""Standard output, whose errors are told from those of files and connections."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO, cast


class OutputError(OSError):
    """Standard output can't be written: it is closed, its reader has stopped, or what it leads to is full or broken."""


class GuardedOutput:
    """The stream, which raises OutputError where writing fails."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text. Raises OutputError."""
        count: int = _written(self._stream.write, text)
        return count

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts. Raises OutputError."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what is buffered. Raises OutputError."""
        _written(self._stream.flush)


def _written(write: Callable[..., Any], *text: str) -> Any:
    try:
        return write(*text)
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from error


def guarded_output() -> contextlib.AbstractContextManager[object]:
    """Let ``sys.stdout`` raise OutputError where it can't be written."""
    return contextlib.redirect_stdout(cast(TextIO, GuardedOutput(sys.stdout)))
