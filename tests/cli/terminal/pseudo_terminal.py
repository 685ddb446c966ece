"""A real terminal: a program runs in a pseudo-terminal of some size, and what it writes there is read."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.testcluster.calls import PATIENCE

CLEAN = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES")}


class Terminal:
    """A program in a pseudo-terminal. ``environ``: besides the environment without what it says of colours and sizes."""

    def __init__(self, command: Sequence[str], columns: int, environ: Mapping[str, str], folder: Path | None) -> None:
        self.seen = ""
        self._mine, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 200, columns, 0, 0))
        env = {**CLEAN, "TERM": "xterm-256color", **environ}
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=folder, start_new_session=True, preexec_fn=_controlling
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        os.close(self._mine)

    def type(self, keys: str) -> None:
        """Type these keys."""
        os.write(self._mine, keys.encode())

    def read_until(self, text: str) -> str:
        """Return what was written since the last call, up to and including ``text``."""
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert self._read(end), f"{text!r} did not come: {self.seen!r}"
        found, _, self.seen = self.seen.partition(text)
        return found + text

    def read_to_end(self) -> tuple[int, str]:
        """Return the exit code, and all that was written since the last call."""
        end = time.monotonic() + PATIENCE
        while self._read(end):
            pass
        return self._process.wait(PATIENCE), self.seen

    def _read(self, end: float) -> bool:
        ready, _, _ = select.select([self._mine], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise AssertionError(f"nothing came for {PATIENCE} s after {self.seen!r}")
        try:
            piece = os.read(self._mine, 65536)
        except OSError:  # EIO: the other side is closed
            return False
        self.seen += piece.decode(errors="surrogateescape")
        return bool(piece)


def _controlling() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def shown(command: Sequence[str], columns: int = 80, folder: Path | None = None, **environ: str) -> tuple[int, str]:
    """Run a command in a terminal to its end, and return its exit code and what it wrote; ends of lines are ``\\n``."""
    with Terminal(command, columns, environ, folder) as terminal:
        code, text = terminal.read_to_end()
    return code, text.replace("\r\n", "\n")


def shown_here(call: Callable[[], object], columns: int = 80) -> str:
    """Call a function of this process with a terminal for standard output and standard error, and return what it wrote there."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 200, columns, 0, 0))
    pieces: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            while piece := os.read(mine, 65536):
                pieces.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    stream = os.fdopen(theirs, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    with stream, contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream), contextlib.suppress(SystemExit):
        call()
    reader.join(PATIENCE)
    os.close(mine)
    return b"".join(pieces).decode().replace("\r\n", "\n")
