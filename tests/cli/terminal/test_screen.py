"""Whether there is colour, and how wide the screen is."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from cli.main import main
from cli.terminal.screen import PLAIN, Choice, Terminal, choose, errors, is_terminal, output, wants_colour
from tests.cli.terminal.pseudo_terminal import shown

ROOT = Path(__file__).parents[3]
TRAIN = "docs/examples/train.yaml"


@pytest.mark.parametrize(
    ("choice", "environ", "terminal", "wanted"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": "0"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"CLICOLOR_FORCE": "1", "TERM": "dumb"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, False, False),
        ("auto", {"FORCE_COLOR": ""}, False, False),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_who_decides_on_colour(choice: Choice, environ: dict[str, str], *, terminal: bool, wanted: bool) -> None:
    """The option, then NO_COLOR whatever it says, then what forces, then the terminal."""
    assert wants_colour(choice, environ, terminal=terminal) is wanted


def test_nothing_is_painted_without_colour_or_text() -> None:
    """So that no line has escapes and nothing else."""
    assert PLAIN.paint("bad", "denied") == "denied"
    assert Terminal(colour=True).paint("bad", "denied") == "\x1b[31mdenied\x1b[0m"
    assert Terminal(colour=True).paint("bad", "") == ""
    assert Terminal(colour=True).paint(None, "x") == "x"


def test_what_is_no_terminal_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS of whoever redirects it says nothing of a file; and a closed stream is none."""
    choose("auto")  # what a test before this one has typed
    monkeypatch.setenv("COLUMNS", "40")
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert output() == PLAIN
    monkeypatch.setattr(sys, "stderr", None)
    assert errors() == PLAIN
    closed = io.StringIO()
    closed.close()
    assert not is_terminal(closed)


def berth(*words: str, columns: int = 80, **environ: str) -> str:
    """What a command shows on a terminal."""
    return shown([sys.executable, "-P", "-m", "cli.main", *words], columns, ROOT, **environ)[1]


@pytest.mark.parametrize("words", [("--color=never", "try", TRAIN), ("try", "--color", "never", TRAIN)])
def test_the_option_stands_on_either_side_of_the_command(words: tuple[str, ...]) -> None:
    """And takes away what a terminal would get."""
    assert "\x1b" not in berth(*words)


def test_a_verdict_has_a_colour_and_says_it_in_words() -> None:
    """Green and red on a terminal; NO_COLOR takes the colours and not a word."""
    words = ("try", TRAIN, "tests/reviews/pods-create-mismatch.json")
    coloured, plain = berth(*words), berth(*words, NO_COLOR="1")
    assert "\x1b[32madmitted with 1 edit\x1b[0m" in coloured
    assert "\x1b[31mdenied\x1b[0m" in coloured
    assert "\x1b" not in plain
    for code in (0, 1, 31, 32, 36):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured == plain


def test_an_error_begins_in_colour() -> None:
    """The command's name; also where the words themselves are wrong, and --color before them holds."""
    assert berth("tyr").startswith("\x1b[31mberth:\x1b[0m unknown command")
    assert berth("--color=never", "tyr").startswith("berth: unknown command")
    assert berth("try", "--color", "never", "--nope").startswith("berth: try: unknown option")


def test_colour_that_is_asked_for_goes_into_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """For less -R, or CI that shows it; what programs read has none."""
    monkeypatch.chdir(ROOT)
    assert main(["--color", "always", "try", "-o", "diff", TRAIN]) == 0
    assert "\x1b[32m+" in capsys.readouterr().out
    assert main(["try", "--color", "always", TRAIN]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert main(["try", "-o", "diff", TRAIN]) == 0
    assert "\x1b" not in capsys.readouterr().out, "the choice is of one run"


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_table_fits_the_terminal(columns: int) -> None:
    """No line is wider, and every name is whole."""
    lines = berth("gpus", columns=columns, NO_COLOR="1").splitlines()
    assert [line for line in lines[:-2] if len(line) > columns] == []
    assert {"A100-40GB", "H200", "RTX-PRO-6000"} <= {word for line in lines for word in line.split()}


def test_columns_is_honoured() -> None:
    """COLUMNS says more than the terminal."""
    assert max(map(len, berth("gpus", columns=200, COLUMNS="70", NO_COLOR="1").splitlines()[:-2])) <= 70
