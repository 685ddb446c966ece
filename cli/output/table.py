"""A table, as text that fits the screen, as CSV and as HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from cli.terminal.screen import PLAIN, Style, Terminal
from cli.terminal.widths import padded, width, wrapped
from documents.printable import printable

_GAP = "  "


class Styled(NamedTuple):
    """A cell in a style."""

    text: str
    style: Style | None


Row = Sequence[str | Styled]
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a cell that a spreadsheet would compute (OWASP CSV Injection)."""


@dataclass(frozen=True, slots=True)
class OutputTable:
    """Rows under heads, which are in capitals: ``USD/H``."""

    heads: Sequence[str]
    rows: Sequence[Row]
    numbers: Collection[int] = ()
    """The columns that HTML aligns on the right."""
    code: Collection[int] = ()
    """The columns with what is to be typed."""

    def text(self, screen: Terminal = PLAIN) -> list[str]:
        """Return lines with columns aligned by spaces, the last one ragged; no trailing blanks.

        Where they would be longer than the screen is wide, cells are wrapped at their blanks, those of the widest columns first. If that is
        not enough, each row becomes a few lines of names and values. No word is ever cut: it may be a name to copy.
        """
        shown = [[_styled(cell) for cell in row] for row in self.rows]
        heads = [Styled(name, "strong") for name in self.heads]
        lines = [heads, *shown]
        columns = [[row[column].text for row in lines] for column in range(len(self.heads))]
        natural = [max(map(width, cells)) for cells in columns]
        if screen.width is None or _total(natural) <= screen.width:
            return [line for row in lines for line in align_row(row, natural, screen)]
        least = [max(width(word) for cell in cells for word in cell.split(" ")) for cells in columns]
        if _total(least) > screen.width:
            return [line for row in shown for line in _record(self.heads, row, screen, screen.width)]
        shrunk = shrink_columns(natural, least, screen.width)
        return [line for row in lines for line in align_row(row, shrunk, screen)]

    def csv(self, keys: Sequence[str]) -> str:
        """Return CSV with these names of columns, of which no spreadsheet computes a cell."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(keys)
        texts = ([_styled(cell).text for cell in row] for row in self.rows)
        writer.writerows([f"'{text}" if text.startswith(FORMULA) else text for text in row] for row in texts)
        return out.getvalue()

    def html(self) -> str:
        """Return an HTML table."""

        def cell(tag: str, column: int, content: str) -> str:
            mark = ' class="n"' if column in self.numbers else ""
            inner = f"<code>{escape(content)}</code>" if column in self.code and tag == "td" else escape(content)
            return f"<{tag}{mark}>{inner}</{tag}>"

        heads = [head.capitalize().replace("Gpus", "GPUs").replace("Usd/", "USD/") for head in self.heads]
        lines = ["<table>", "<tr>" + "".join(cell("th", i, head) for i, head in enumerate(heads)) + "</tr>"]
        lines += ["<tr>" + "".join(cell("td", i, _styled(one).text) for i, one in enumerate(row)) + "</tr>" for row in self.rows]
        return "\n".join([*lines, "</table>"])


def _styled(cell: str | Styled) -> Styled:
    return Styled(printable(cell), None) if isinstance(cell, str) else Styled(printable(cell.text), cell.style)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def shrink_columns(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return widths that fit if possible: the widest columns shrink first, and none to less than ``least``."""
    widths = list(natural)
    while _total(widths) > room and (wide := [column for column in range(len(widths)) if widths[column] > least[column]]):
        widths[max(wide, key=lambda column: widths[column])] -= 1
    return widths


def align_row(row: Sequence[Styled], widths: Sequence[int], screen: Terminal = PLAIN) -> Iterator[str]:
    """Yield the lines of a row."""
    cells = [wrapped(cell.text, size) for cell, size in zip(row, widths, strict=True)]
    for number in range(max(map(len, cells))):
        texts = [cell[number] if number < len(cell) else "" for cell in cells]
        last = max((place for place, text in enumerate(texts) if text), default=-1)
        parts = []
        for place, text in enumerate(texts[: last + 1]):
            fill = "" if place == last else padded(text, widths[place])[len(text) :]
            parts.append(screen.paint(row[place].style, text) + fill)
        yield _GAP.join(parts)


def _record(head: Sequence[str], row: Sequence[Styled], screen: Terminal, room: int) -> Iterator[str]:
    """Yield a row as names and values, as many to a line as fit; those without a value are left out."""
    line, used = "", 0
    for name, cell in zip(head, row, strict=True):
        if not cell.text:
            continue
        size = width(name) + 1 + width(cell.text)
        if size > room - len(_GAP):
            if line:
                yield line
            *lines, last = wrapped(f"{name} {cell.text}", room - 2 * len(_GAP))
            yield from (f"{_GAP * bool(used or number)}{one}" for number, one in enumerate(lines))
            line, used = f"{_GAP}{last}", len(_GAP) + width(last)
            continue
        pair = f"{screen.paint('strong', name)} {screen.paint(cell.style, cell.text)}"
        if used and used + len(_GAP) + size > room:
            yield line
            line, used = _GAP + pair, len(_GAP) + size
        else:
            line, used = (f"{line}{_GAP}{pair}", used + len(_GAP) + size) if used else (pair, size)
    if line:
        yield line
