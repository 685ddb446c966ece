"""Where the marks of a drawing are: a tile for each node with its devices as cells, or, of many nodes, bars by what is free on each.

Units are those of the SVG's view box, which is 320 wide: as wide as the narrowest telephone, so that text is never smaller than 12 px.
A free cell is hollow, a held one is full, one that is of no use is crossed out: no state is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from console.berths.groups import Use
from documents.printable import counted

WIDTH = 320
MOST_TILES = 24
"""Nodes that have a tile each: six rows of four."""
MOST_CELLS = 16
"""Devices of a node that have a cell each."""
ACROSS = 8
"""Cells in a row of a tile."""
_CELL, _STEP, _GAP, _TEXT = 14, 17, 14, 17
_LEAST = 52
"""Width of a tile: its text."""
_BAR_FROM, _BAR, _BAR_HEIGHT, _BAR_STEP = 92, 146, 14, 24


class DrawnText(NamedTuple):
    """One text, with the point where its line starts."""

    x: int
    y: int
    text: str


@dataclass(slots=True)
class Drawing:
    """Pieces of the data of SVG's ``path`` by the state of devices, and texts. ``tiles``: whether each node is drawn."""

    tiles: bool
    width: int = WIDTH
    height: int = 0
    held: list[str] = field(default_factory=list)
    free: list[str] = field(default_factory=list)
    out: list[str] = field(default_factory=list)
    texts: list[DrawnText] = field(default_factory=list)


def drawing(uses: Sequence[Use]) -> Drawing:
    """Draw the devices of one name of a group."""
    canvas = Drawing(tiles=len(uses) <= MOST_TILES and all(use.total <= MOST_CELLS for use in uses))
    canvas.height = _tiles(canvas, uses) if canvas.tiles else _bars(canvas, uses)
    return canvas


def _tiles(canvas: Drawing, uses: Sequence[Use]) -> int:
    most = max((one.total for one in uses), default=1)
    columns, rows = min(most, ACROSS), -(-most // ACROSS)
    if most in (6, 8):
        columns, rows = most // 2, 2
    wide = max(_LEAST, columns * _STEP - (_STEP - _CELL))
    across = max(1, (WIDTH + _GAP) // (wide + _GAP))
    high = _TEXT + rows * _STEP + 6
    for at, one in enumerate(sorted(uses, key=lambda one: (-one.free, -one.held, one.node))):
        left, top = at % across * (wide + _GAP), at // across * high
        canvas.texts.append(DrawnText(left, top + 12, _short(one)))
        for cell, path in enumerate(_cells(canvas, one)):
            path.append(_box(left + cell % columns * _STEP + 1, top + _TEXT + cell // columns * _STEP + 1, _CELL - 2, _CELL - 2))
            if path is canvas.out:
                path.append(_cross(left + cell % columns * _STEP + 1, top + _TEXT + cell // columns * _STEP + 1, _CELL - 2))
    return max(1, -(-len(uses) // across)) * high


def _short(one: Use) -> str:
    if one.state != "ready":
        return "cordon" if one.state == "cordoned" else "down"
    return f"{one.free} free" if one.free else "full" if one.held else "broken"


def _cells(canvas: Drawing, one: Use) -> Iterator[list[str]]:
    yield from [canvas.held] * one.held
    yield from [canvas.free] * one.free
    yield from [canvas.out] * one.out


@dataclass(slots=True)
class Bar:
    """Nodes on which about as many devices are free."""

    label: str
    nodes: int = 0
    held: int = 0
    free: int = 0
    out: int = 0


def bars(uses: Iterable[Use]) -> list[Bar]:
    """Return the nodes by what is free on them, those with most first, those that take no pods last."""
    every = list(uses)
    exact = max((one.total for one in every), default=0) <= MOST_CELLS
    found: dict[tuple[int, int], Bar] = {}
    for one in every:
        rank, label = _class(one, exact=exact)
        bar = found.setdefault(rank, Bar(label))
        bar.nodes += 1
        bar.held, bar.free, bar.out = bar.held + one.held, bar.free + one.free, bar.out + one.out
    return [bar for _, bar in sorted(found.items())]


def _class(one: Use, *, exact: bool) -> tuple[tuple[int, int], str]:
    if one.state != "ready":
        return (2, 0), "unavailable"
    if not one.free:
        return (1, 0), "none free"
    if exact:
        return (0, -one.free), f"{one.free} free"
    if one.whole:
        return (0, 0), "all free"
    return ((0, 1), "≥ half free") if 2 * one.free >= one.total else ((0, 2), "< half free")


def _bars(canvas: Drawing, uses: Sequence[Use]) -> int:
    found = bars(uses)
    most = max(bar.nodes for bar in found)
    for at, bar in enumerate(found):
        top = at * _BAR_STEP
        canvas.texts.append(DrawnText(0, top + 12, bar.label))
        length = max(4, round(_BAR * bar.nodes / most))
        left = _BAR_FROM
        every = max(1, bar.held + bar.free + bar.out)
        ends = [round(length * part / every) for part in (bar.held, bar.held + bar.free, every)]
        for path, begin, end in ((canvas.held, 0, ends[0]), (canvas.free, ends[0], ends[1]), (canvas.out, ends[1], ends[2])):
            if end > begin:
                path.append(_box(left + begin, top + 1, end - begin, _BAR_HEIGHT))
        if ends[2] - ends[1] >= 4:
            canvas.out.append(f"M{left + ends[1]} {top + 1 + _BAR_HEIGHT}L{left + ends[2]} {top + 1}")
        canvas.texts.append(DrawnText(left + length + 6, top + 12, counted(bar.nodes, "node")))
    return len(found) * _BAR_STEP


def _box(left: int, top: int, width: int, height: int) -> str:
    return f"M{left} {top}h{width}v{height}h-{width}z"


def _cross(left: int, top: int, size: int) -> str:
    return f"M{left} {top}l{size} {size}M{left + size} {top}l-{size} {size}"
