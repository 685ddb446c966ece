"""How far something is that takes time: one line on standard error that is rewritten, and gone at the end. Nothing where that is no
terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from types import TracebackType
from typing import Self, TypeVar

from cli.terminal.screen import columns, is_terminal
from cli.terminal.widths import fit_width
from documents.printable import printable

T = TypeVar("T")
AFTER = 1.0
"""Seconds of work after which it is shown: what is done sooner needs no word."""
_EVERY = 0.1
"""Least seconds between two states: what an eye follows."""
_ERASE = "\r\x1b[K"
"""Erase in Line (ECMA-48, 8.3.41)."""
_shown: Progress | None = None


class Progress:
    """Used as a context; ``after``: seconds after which it is shown."""

    def __init__(self, after: float = AFTER, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = clock() + after
        self._terminal = is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"
        self._written = False

    def __enter__(self) -> Self:
        global _shown
        _shown = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        global _shown
        self.clear()
        _shown = None

    def show(self, text: str) -> None:
        """Show this state, unless the last one is too new."""
        if not self._terminal or (now := self._clock()) < self._next:
            return
        self._next, self._written = now + _EVERY, True
        width = columns(sys.stderr) - 1  # in the last column some terminals begin a new line
        print(f"{_ERASE}{fit_width(printable(text), width)}", end="", file=sys.stderr, flush=True)

    def read(self, kind: str, count: int) -> None:
        """Show what was read of a cluster."""
        self.show(f"reading the cluster: {count} {kind} objects")

    def clear(self) -> None:
        """Erase the line, for another one to be written."""
        if self._written:
            self._written = False
            print(_ERASE, end="", file=sys.stderr, flush=True)


def reading() -> Progress:
    """Return the progress of reading a cluster, shown from the first answer on: how long the next takes nobody knows."""
    return Progress(after=0.0)


def each(verb: str, what: str, items: Iterable[T]) -> Iterator[T]:
    """Yield the items, and show how many are done: ``judged 1200 of 5000 pods``."""
    of = f" of {len(items)}" if isinstance(items, Sized) else ""
    with Progress() as progress:
        for number, item in enumerate(items):
            progress.show(f"{verb} {number}{of} {what}")
            yield item


def clear() -> None:
    """Erase the line that is shown, if one is."""
    if _shown is not None:
        _shown.clear()
