"""Long lists in pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from console.server.query import Query

Row = TypeVar("Row")
SIZE = 50
"""Rows of a page: two screens of a laptop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paged(Generic[Row]):
    """One page of a list."""

    rows: Sequence[Row]
    number: int
    last: int
    total: int
    before: str
    """The address of the page before; "" on the first."""
    after: str


def paged(rows: Sequence[Row], query: Query, path: str, *, field: str = "page", size: int = SIZE) -> Paged[Row]:
    """Return the page that the query names; past the end, the last one."""
    last = max(1, -(-len(rows) // size))
    number = min(query.page(field), last)
    return Paged(
        rows=rows[(number - 1) * size : number * size],
        number=number,
        last=last,
        total=len(rows),
        before=query.link(path, **{field: number - 1}) if number > 1 else "",
        after=query.link(path, **{field: number + 1}) if number < last else "",
    )
