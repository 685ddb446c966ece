"""Tables: as they are in a pipe, and on screens of any width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cli.output.table import OutputTable, Styled
from cli.terminal.screen import Terminal
from cli.terminal.widths import width

HEAD = ("NAME", "WHAT IT SAYS", "NUMBER")
ROWS = [["a-name-of-some-length", "one two three four five six seven", "1"], ["b", "", "22"]]


def test_a_pipe_gets_lines_of_any_length() -> None:
    """So that grep finds what belongs together."""
    assert OutputTable(HEAD, ROWS).text() == [
        "NAME                   WHAT IT SAYS                       NUMBER",
        "a-name-of-some-length  one two three four five six seven  1",
        "b                                                         22",
    ]


def test_a_narrow_screen_wraps_at_blanks() -> None:
    """The widest column shrinks; the name is whole."""
    assert OutputTable(HEAD, ROWS).text(Terminal(width=50)) == [
        "NAME                   WHAT IT SAYS         NUMBER",
        "a-name-of-some-length  one two three four   1",
        "                       five six seven",
        "b                                           22",
    ]


def test_a_screen_that_is_too_narrow_gets_names_and_values() -> None:
    """A few lines for each row, without what is empty."""
    assert OutputTable(HEAD, ROWS).text(Terminal(width=30)) == [
        "NAME a-name-of-some-length",
        "  WHAT IT SAYS one two three",
        "  four five six seven",
        "  NUMBER 1",
        "NAME b  NUMBER 22",
    ]


def test_wide_characters_take_two_columns() -> None:
    """And combining ones none."""
    assert OutputTable(("A", "B"), [["計算", "x"], ["e\u0301", "y"]]).text() == ["A     B", "計算  x", "e\u0301     y"]


def test_a_style_is_around_the_words_alone() -> None:
    """Blanks that align have none; without colour nothing has."""
    rows: list[list[str | Styled]] = [[Styled("no", "bad"), "x"], ["other", "y"]]
    assert OutputTable(("A", "B"), rows).text(Terminal(colour=True)) == [
        "\x1b[1mA\x1b[0m      \x1b[1mB\x1b[0m",
        "\x1b[31mno\x1b[0m     x",
        "other  y",
    ]
    assert OutputTable(("A", "B"), rows).text() == ["A      B", "no     x", "other  y"]


def test_a_cell_from_outside_stays_a_cell() -> None:
    """Ends of lines and escapes in it are shown."""
    assert OutputTable(("A", "B"), [["x\n\x1b[2J", "y"]]).text() == ["A           B", r"x\n\x1b[2J  y"]


CELLS = st.lists(st.lists(st.text("ab 計\u0301", max_size=30), min_size=3, max_size=3), min_size=1, max_size=4)


@given(CELLS, st.integers(10, 90))
def test_no_word_is_cut_and_no_line_is_too_long_for_want_of_a_blank(rows: list[list[str]], columns: int) -> None:
    """Every word of every cell stands whole on a line; a line is longer than the screen only for a word that is."""
    lines = OutputTable(HEAD, rows).text(Terminal(width=columns))
    words = [word for line in lines for word in line.split()]
    assert sorted(word for row in rows for cell in row for word in cell.split()) == sorted(
        word for word in words if word not in " ".join(HEAD).split()
    )
    longest = max((width(word) for line in lines for word in line.split()), default=0)
    assert all(width(line) <= max(columns, longest + 4) for line in lines)
