"""Progress: one line, rewritten, gone at the end, and only where somebody looks."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

import pytest

from cli.output import stderr
from cli.terminal.progress import Progress, each
from tests.cli.terminal.pseudo_terminal import shown_here

ERASE = "\r\x1b[K"


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def states(after: float, *steps: tuple[float, str], columns: int = 80) -> str:
    """What a terminal gets of states at some times."""

    def run() -> None:
        clock = Clock()
        with Progress(after, clock) as progress:
            for clock.now, text in steps:
                progress.show(text)

    return shown_here(run, columns)


def test_what_is_done_soon_needs_no_word() -> None:
    """Nothing is written within the first second, and nothing need be erased."""
    assert states(1.0, (0.0, "a"), (0.99, "b")) == ""


def test_one_line_is_rewritten_and_gone_at_the_end() -> None:
    """Not more often than an eye follows."""
    assert states(1.0, (0.5, "a"), (1.0, "b"), (1.05, "c"), (1.2, "d")) == f"{ERASE}b{ERASE}d{ERASE}"


def test_it_stays_on_its_line() -> None:
    """Cut to the width of the terminal, and printable."""
    assert states(0.0, (0.0, "a\x1b[2J" + "計" * 100), columns=20) == f"{ERASE}a\\x1b[2J計計計計...{ERASE}"


def test_a_sentence_takes_its_place() -> None:
    """What is said in between stands on a line of its own."""

    def run() -> None:
        with Progress(0.0) as progress:
            progress.show("reading")
            stderr.say("something")

    assert shown_here(run).endswith(f"{ERASE}reading{ERASE}" + stderr.name() + ": something\n")


def test_it_is_gone_after_ctrl_c() -> None:
    """And after any other end."""

    def run() -> None:
        try:
            with Progress(0.0) as progress:
                progress.show("reading")
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            print("ended", file=sys.stderr)

    assert shown_here(run) == f"{ERASE}reading{ERASE}ended\n"


def test_no_terminal_gets_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a file nor a terminal that can't erase."""
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with Progress(0.0) as progress:
        progress.show("reading")
    assert file.getvalue() == ""
    monkeypatch.setenv("TERM", "dumb")
    assert states(0.0, (0.0, "a")) == ""


def test_items_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of how many, where that is known; each comes through, in order."""
    monkeypatch.setattr(Progress.__init__, "__defaults__", (0.0, Clock()))

    def counted(found: Iterator[int]) -> str:
        return shown_here(lambda: list(found))

    assert list(each("judged", "pods", [1, 2, 3])) == [1, 2, 3]
    assert counted(each("judged", "pods", [1, 2])) == f"{ERASE}judged 0 of 2 pods{ERASE}"
    assert counted(each("judged", "pieces", iter([1]))) == f"{ERASE}judged 0 pieces{ERASE}"
