"""Plain tables of text."""

from __future__ import annotations

from collections.abc import Sequence

Row = Sequence[str]


def table(head: Row, rows: Sequence[Row]) -> list[str]:
    """Return lines with columns aligned by spaces, the last one ragged; no trailing blanks."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)]
