"""Two small drawings as SVG text, readable on light and dark pages: latencies over percentiles, and bars of stages.

By hand: a plotting library is 30 MB for some forty lines, and its files are a hundred times as large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 76, 50
STYLE = (
    "<style>text{font:12px sans-serif;fill:#24292f}.h{font-size:14px;font-weight:600}.g{stroke:#d0d7de}.o{fill:#57606a}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.g{stroke:#30363d}.o{fill:#9198a1}}</style>"
)
COLOURS = ("#0969da", "#d4731c", "#1a7f37", "#a475f9", "#bf8700", "#cf222e", "#6e7781", "#2da4b4")
"""each with a contrast of at least 3 on white and on GitHub's black"""
TICKS = (50, 90, 99, 99.9, 99.99)
MARKED = (50, 99, 99.9)
Line = Sequence[tuple[float, float]]
"""(percent, microseconds), rising"""


def latencies(title: str, lines: Mapping[str, Line]) -> str:
    """Latency by percentile, both on logarithmic axes; the marks are p50, p99 and p99.9."""
    points = [point for line in lines.values() for point in line]
    low = 10 ** math.floor(math.log10(max(1.0, min(us for _, us in points))))
    high = 10 ** math.ceil(math.log10(max(us for _, us in points)))
    most = max(percent for percent, _ in points if percent < 100)
    axes = _Axes(low=low, high=high, nines=max(2.0, _nines(most)))
    inside = [*_grid(axes, most)]
    for (name, line), colour in zip(lines.items(), COLOURS, strict=False):
        inside += _line(axes, name, line, colour, at=42 + 18 * list(lines).index(name))
    return _svg(title, HEIGHT, inside)


def bars(title: str, stages: Sequence[str], rows: Mapping[str, Mapping[str, float]]) -> str:
    """One stacked bar for each row: microseconds of each stage, on one scale."""
    scale = (WIDTH - LEFT - RIGHT) / max(sum(row.values()) for row in rows.values())
    inside: list[str] = []
    for number, (name, row) in enumerate(rows.items()):
        y, x = 40 + 46 * number, float(LEFT)
        inside.append(_text(LEFT - 8, y + 18, name, "end"))
        for stage, colour in zip(stages, COLOURS, strict=False):
            wide = row[stage] * scale
            inside.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="26" fill="{colour}"/>')
            if wide > 26:
                inside.append(f'<text x="{x + wide / 2:.1f}" y="{y + 17}" text-anchor="middle" style="fill:#fff">{row[stage]:.0f}</text>')
            x += wide
        inside.append(_text(x - 2, y + 40, f"{sum(row.values()):.0f} us", "end"))
    below = 40 + 46 * len(rows) + 14
    for number, (stage, colour) in enumerate(zip(stages, COLOURS, strict=False)):
        x = LEFT + 80 * number
        inside += [f'<rect x="{x}" y="{below}" width="10" height="10" fill="{colour}"/>', _text(x + 14, below + 10, stage)]
    return _svg(title, below + 26, inside)


class _Axes:
    def __init__(self, *, low: float, high: float, nines: float) -> None:
        self.low, self.high, self._nines = low, high, nines

    def x(self, percent: float) -> float:
        return LEFT + min(_nines(percent) / self._nines, 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, us: float) -> float:
        share = math.log(max(us, self.low) / self.low) / math.log(self.high / self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _nines(percent: float) -> float:
    """50 % is 0.3, 90 % is 1, 99 % is 2, 99.9 % is 3 ..."""
    return -math.log10(1 - min(percent, 99.9999) / 100)


def _grid(axes: _Axes, most: float) -> Iterator[str]:
    for percent in (tick for tick in TICKS if tick <= most):
        x = axes.x(percent)
        yield f'<path class="g" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>' + _text(x, HEIGHT - BOTTOM + 18, f"{percent:g}", "middle")
    for power in range(round(math.log10(axes.low)), round(math.log10(axes.high)) + 1):
        y = axes.y(10**power)
        yield f'<path class="g" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>' + _text(LEFT - 8, y + 4, f"{10**power / 1000:g}", "end")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "per cent of calls answered within", "middle")
    yield f'<text transform="translate(18 {HEIGHT / 2})rotate(-90)" text-anchor="middle">milliseconds since the call was due</text>'


def _line(axes: _Axes, name: str, line: Line, colour: str, *, at: float) -> Iterator[str]:
    shown = [(percent, us) for percent, us in line if percent < 100]
    path = "L".join(f"{axes.x(percent):.1f} {axes.y(us):.1f}" for percent, us in shown)
    yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    marks = []
    for mark in (mark for mark in MARKED if mark <= shown[-1][0]):
        us = next(us for percent, us in shown if percent >= mark)
        marks.append(f"p{mark:g} {us / 1000:.2f} ms")
        yield f'<circle cx="{axes.x(mark):.1f}" cy="{axes.y(us):.1f}" r="4" fill="{colour}"/>'
    yield f'<rect x="{LEFT}" y="{at - 9}" width="10" height="10" fill="{colour}"/>'
    yield _text(LEFT + 16, at, f"{name}: {', '.join(marks)}")


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(title: str, height: int, inside: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">{STYLE}'
    return "\n".join([head, f'<text class="h" x="{LEFT}" y="20">{escape(title)}</text>', *inside, "</svg>\n"])
