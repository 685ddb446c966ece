"""Draw a terminal recording as SVG. The first command and its output are visible from the first frame; later commands appear once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tests.pictures.drawing import ADVANCE, box, picture
from tests.pictures.terminal import Line

SIZE, LEADING, EDGE, BAR = 13.0, 19.0, 16.0, 34.0
"""Pixels: type, from line to line, around, and the bar of the window"""
TYPED, SHOWN = 0.8, 1.6
"""Seconds: from a command to what it wrote, and from that to the next command"""
STYLE = (
    ".window{fill:var(--raised);stroke:var(--line)}.dot{fill:var(--line)}.bold{font-weight:700}.dim{opacity:.75}.italic{font-style:italic}"
    ".underline{text-decoration:underline}.red{fill:var(--bad)}.green{fill:var(--good)}.yellow{fill:var(--warn)}.blue{fill:var(--info)}"
    ".magenta{fill:var(--rare)}.cyan{fill:var(--accent)}.black,.prompt{fill:var(--soft)}"
    "@media(prefers-reduced-motion:no-preference){.step{animation:appear .2s both}}@keyframes appear{from{opacity:0}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is typed, and what is then on the screen."""

    typed: str
    lines: Sequence[Line]


def recording(title: str, commands: Sequence[Command], columns: int) -> str:
    """Return the SVG. Text is text: it can be searched, copied and read aloud."""
    width = columns * SIZE * ADVANCE + 2 * EDGE
    parts, y, begins = [], BAR + EDGE, 0.0
    for command in commands:
        typed = f'<tspan class="prompt">$ </tspan><tspan class="bold">{escape(command.typed)}</tspan>'
        parts += [_step(begins, [_line(y, typed)])]
        shown = begins + TYPED if begins else 0.0
        y += LEADING
        written = [_line(y + number * LEADING, _spans(line)) for number, line in enumerate(command.lines)]
        parts += [_step(shown, written)]
        y += LEADING * (len(written) + 1)
        begins += TYPED + SHOWN
    height = y - LEADING + EDGE / 2
    dots = [f'<circle cx="{EDGE + 6 + 18 * number}" cy="{BAR / 2 + 2}" r="5.5" class="dot"/>' for number in range(3)]
    return picture(width, height, title, STYLE, [box(0.5, 0.5, width - 1, height - 1, "window"), *dots, *parts])


def _step(seconds: float, lines: Sequence[str]) -> str:
    """Return lines that appear after some seconds; 0: they are visible from the start."""
    if not seconds:
        return "\n".join(["<g>", *lines, "</g>"])
    return "\n".join([f'<g class="step" style="animation-delay:{seconds:g}s">', *lines, "</g>"])


def _line(y: float, spans: str) -> str:
    return f'<text x="{EDGE:g}" y="{y:g}" font-size="{SIZE:g}" class="mono" xml:space="preserve">{spans}</text>'


def _spans(line: Line) -> str:
    return "".join(
        f'<tspan class="{" ".join(sorted(span.style))}">{escape(span.text)}</tspan>' if span.style else escape(span.text) for span in line
    )
