"""What a command writes to a terminal, of a real one (a pseudo-terminal), as lines of coloured text."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SHELL = {"TERM": "xterm-256color"}
TALL = 200
"""Rows of the terminal: nothing scrolls away."""
COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underline"}
OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",)}
_PART = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|([\r\n\b\t])|([^\x1b\r\n\b\t]+)")


@dataclass(frozen=True, slots=True)
class Span:
    """Text in one style: names of ``COLOURS`` and ``ATTRIBUTES``."""

    text: str
    style: frozenset[str] = frozenset()


Line = tuple[Span, ...]
Cell = tuple[str, frozenset[str]]


@dataclass(slots=True)
class Screen:
    """The part of an ECMA-48 terminal that lines of text, progress on one line and colours need."""

    columns: int
    lines: list[list[Cell]] = field(default_factory=lambda: [[]])
    style: frozenset[str] = frozenset()
    row: int = 0
    column: int = 0

    def feed(self, text: str) -> None:
        """Raises ValueError for what it does not know: a picture would be wrong."""
        at = 0
        while at < len(text):
            part = _PART.match(text, at)
            if part is None:
                raise ValueError(f"the terminal does not know {text[at : at + 12]!r}")
            at = part.end()
            codes, command, control, plain = part.groups()
            if command:
                self._command(command, [int(code or 0) for code in codes.lstrip("?").split(";")])
            elif control:
                self._control(control)
            else:
                for character in plain or "":
                    self._put(character)

    def _command(self, command: str, codes: list[int]) -> None:
        if command == "m":
            for code in codes:
                self._colour(code)
        elif command == "K":
            del self._line()[self.column if codes[0] == 0 else 0 :]
        elif command == "A":
            self.row = max(0, self.row - max(1, codes[0]))
        elif command not in "hlJ":
            raise ValueError(f"the terminal does not know CSI {codes} {command}")

    def _colour(self, code: int) -> None:
        without = {*COLOURS, "bright"}
        if code == 0:
            self.style = frozenset()
        elif code in ATTRIBUTES:
            self.style |= {ATTRIBUTES[code]}
        elif code in OFF:
            self.style -= {*OFF[code]}
        elif code == 39:
            self.style -= without
        elif 30 <= code <= 37 or 90 <= code <= 97:
            self.style = (self.style - without) | {COLOURS[code % 10]} | ({"bright"} if code >= 90 else set())
        else:
            raise ValueError(f"the terminal does not know the colour {code}")

    def _control(self, control: str) -> None:
        if control == "\n":
            self.row += 1
            self._line()
        elif control == "\r":
            self.column = 0
        elif control == "\b":
            self.column = max(0, self.column - 1)
        else:
            for _ in range(8 - self.column % 8):
                self._put(" ")

    def _put(self, character: str) -> None:
        if self.column >= self.columns:
            self.row, self.column = self.row + 1, 0
        line = self._line()
        line += [(" ", frozenset())] * (self.column + 1 - len(line))
        line[self.column] = character, self.style
        self.column += 1

    def _line(self) -> list[Cell]:
        while len(self.lines) <= self.row:
            self.lines.append([])
        return self.lines[self.row]

    def shown(self) -> list[Line]:
        """Its lines, without empty ones at the end."""
        found = [_spans(line) for line in self.lines]
        while found and not found[-1]:
            found.pop()
        return found


def _spans(cells: Sequence[Cell]) -> Line:
    spans: list[Span] = []
    for character, style in cells:
        if spans and spans[-1].style == style:
            spans[-1] = Span(spans[-1].text + character, style)
        else:
            spans.append(Span(character, style))
    if spans and not spans[-1].style:
        spans[-1] = Span(spans[-1].text.rstrip())
    return tuple(span for span in spans if span.text)


def written(command: Sequence[str], columns: int, folder: str, environment: Mapping[str, str]) -> list[Line]:
    """What the command leaves on a terminal of that many columns. Its exit code does not matter: a denial is shown too."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", TALL, columns, 0, 0))
    with subprocess.Popen(command, cwd=folder, env={**environment, **SHELL}, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        screen = Screen(columns)
        screen.feed(_all(ours).decode())
    os.close(ours)
    return screen.shown()


def _all(file: int) -> bytes:
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(file, 65536)
        except OSError:  # EIO: nobody writes any more (Linux)
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)
