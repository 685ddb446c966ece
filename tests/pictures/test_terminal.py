"""Lines and colours as a terminal shows them, and as SVG."""

from __future__ import annotations

import os
import sys
from xml.etree import ElementTree

import pytest

from tests.pictures.one_job import Outcome, one_job
from tests.pictures.recording import Command, recording
from tests.pictures.terminal import Screen, Span, written


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb\r\n", ["a", "b"]),
        ("read 1\rread 22\r\x1b[Kdone\r\n", ["done"]),
        ("one\r\ntwo\r\n\x1b[A\x1b[2Kthree\r\n", ["one", "three"]),
        ("0123456789012", ["0123456789", "012"]),
        ("a\tb", ["a       b"]),
        ("x  \r\n\r\n\r\n", ["x"]),
    ],
)
def test_lines_are_those_of_a_terminal(text: str, shown: list[str]) -> None:
    """Progress is written over, long lines go on in the next row, blanks at the end are not seen."""
    screen = Screen(10)
    screen.feed(text)
    assert ["".join(span.text for span in line) for line in screen.shown()] == shown


def test_colours_are_kept() -> None:
    """Bold, and colours of both kinds, until they are switched off."""
    screen = Screen(40)
    screen.feed("\x1b[1mA\x1b[32mB\x1b[0mC\x1b[91mD\x1b[39mE")
    assert screen.shown() == [
        (
            Span("A", frozenset({"bold"})),
            Span("B", frozenset({"bold", "green"})),
            Span("C"),
            Span("D", frozenset({"red", "bright"})),
            Span("E"),
        )
    ]


def test_what_a_picture_would_show_wrong_is_an_error() -> None:
    """A command that moves the cursor elsewhere."""
    with pytest.raises(ValueError, match="does not know"):
        Screen(10).feed("\x1b[5;5H")


def test_a_command_writes_to_a_terminal() -> None:
    """A real one, of the width that is asked for."""
    code = "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size().columns); print('\\x1b[32mgreen\\x1b[0m', file=sys.stderr)"
    found = written([sys.executable, "-c", code], 66, ".", os.environ)
    assert found == [(Span("True 66"),), (Span("green", frozenset({"green"})),)]


def test_a_recording_escapes_what_was_written() -> None:
    """Its text is that of the terminal, whatever is in it."""
    command = Command(typed="echo '<b>&'", lines=[(Span("<script>", frozenset({"red"})), Span(" & more"))])
    root = ElementTree.fromstring(recording("A <title>", [command], 80))
    assert ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")] == ["$ echo '<b>&'", "<script> & more"]


def test_one_job_tells_all_that_it_is_given() -> None:
    """Both outcomes, every line of the diff and every policy."""
    without = Outcome(pod="train-a", namespace="one", phase="Pending", says=["no node will do, since all of them are tainted"])
    with_berth = Outcome(pod="train-b", namespace="two", phase="Running", says=["on node t4"])
    root = ElementTree.fromstring(one_job("train.yaml", without, ["@@ -1 +1 @@", "+  key: x"], ["ClusterGPUPolicy/p"], with_berth))
    found = " ".join("".join(root.itertext()).split())
    text = " ".join(" ".join("".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")).split())
    assert "The same Job" in found
    for words in (
        "train-a",
        "Pending",
        "no node will do, since all of them are",
        "train-b",
        "Running",
        "+ key: x",
        "added by ClusterGPUPolicy/p",
    ):
        assert words in text
