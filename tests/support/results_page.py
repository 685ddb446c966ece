"""bench/RESULTS.md: parts that commands write, each between its own marks, and everything else by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "bench" / "RESULTS.md"
HEAD = "# Results\n\nWhat was measured last, by which command.\n"


def marks(name: str) -> tuple[str, str]:
    """The lines between which the part ``name`` stands."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def part(name: str, lines: Iterable[str]) -> str:
    """``lines`` between the marks of ``name``."""
    begin, end = marks(name)
    return "\n".join([begin, *lines, end])


def replaced(text: str, name: str, new: str) -> str:
    """``text`` with the part ``name`` replaced by ``new``, or with ``new`` at its end."""
    begin, end = marks(name)
    start, stop = text.find(begin), text.find(end)
    if start < 0 or stop < 0:
        return f"{text.rstrip()}\n\n{new}\n"
    return text[:start] + new + text[stop + len(end) :]


def write(name: str, lines: Iterable[str], page: Path = RESULTS) -> None:
    """Put a part in its place on the page, which is made where there is none."""
    before = page.read_text() if page.exists() else HEAD
    page.write_text(replaced(before, name, part(name, lines)))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; every column but the first is of figures."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def shown(claim: str, figure: str, *, held: bool) -> str:
    """A bar that the issue sets, with what was measured."""
    return f"- {'held' if held else '**NOT held**'}: {claim}: {figure}"
