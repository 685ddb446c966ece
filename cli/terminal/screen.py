"""Whether colour is wanted, and how wide the screen is: decided here alone.

Colour never says what words don't say too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TextIO

Choice = Literal["auto", "always", "never"]
CHOICES: tuple[Choice, ...] = ("auto", "always", "never")
Style = Literal["good", "bad", "unsure", "strong", "place"]
_CODES: Mapping[Style, int] = {"strong": 1, "bad": 31, "good": 32, "unsure": 33, "place": 36}
"""Select Graphic Rendition (ECMA-48, 8.3.117): the eight colours that every theme of a terminal sets itself."""
_OF_A_DIFF: Mapping[str, Style] = {"-": "bad", "+": "good", "@": "place"}
"""The style of a line of a diff, by its first character."""
_UNKNOWN = 80
"""Columns of a terminal that does not say how many it has: those of a VT100."""
_OFF = "\x1b[0m"
_chosen: Choice = "auto"


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where text goes. ``width``: its columns; None for what is no terminal, where no line is wrapped."""

    colour: bool = False
    width: int | None = None

    def paint(self, style: Style | None, text: str) -> str:
        """Return the text in a style, if there is colour; ``text`` is printable already."""
        return f"\x1b[{_CODES[style]}m{text}{_OFF}" if style and text and self.colour else text

    def paint_diff(self, diff: Iterable[str]) -> Iterator[str]:
        """Yield the lines of a unified diff with the colours that git gives them, if there is colour."""
        from documents.diff import HEADER  # it imports YAML

        for number, line in enumerate(diff):
            yield self.paint("strong" if number < HEADER else _OF_A_DIFF.get(line[:1]), line)


PLAIN = Terminal()


def choose(choice: Choice) -> None:
    """Set what ``--color`` says, for the rest of the process."""
    global _chosen
    _chosen = choice


def output() -> Terminal:
    """Return the screen of standard output."""
    return _of(sys.stdout)


def errors() -> Terminal:
    """Return the screen of standard error."""
    return _of(sys.stderr)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream, which is None or closed where the parent closed it, is a terminal."""
    return stream is not None and not stream.closed and stream.isatty()


def columns(stream: TextIO) -> int:
    """Return the width of a terminal: COLUMNS, if it is a number, else what the terminal says of itself; 80 if it says nothing.

    (``shutil.get_terminal_size`` asks standard output alone, which may be a file where standard error is a terminal.)
    """
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and said.isascii() and int(said[:6]) > 0:
        return int(said[:6])
    try:
        return os.get_terminal_size(stream.fileno()).columns or _UNKNOWN
    except (OSError, ValueError):
        return _UNKNOWN


def _of(stream: TextIO | None) -> Terminal:
    terminal = is_terminal(stream)
    width = columns(stream) if terminal and stream is not None else None
    return Terminal(colour=wants_colour(_chosen, os.environ, terminal=terminal), width=width)


def wants_colour(choice: Choice, environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Return whether to colour. The first that speaks decides: ``--color``, ``NO_COLOR`` (https://no-color.org), ``CLICOLOR_FORCE``
    (https://bixense.com/clicolors) or ``FORCE_COLOR`` (https://force-color.org), and for a terminal ``TERM``."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0") not in ("", "0") for name in ("CLICOLOR_FORCE", "FORCE_COLOR")):
        return True
    return terminal and environ.get("TERM") != "dumb"
