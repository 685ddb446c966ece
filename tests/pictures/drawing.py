"""What drawings have in common: text in boxes, in colours of a light and a dark scheme, as the reader's system has it."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

LIGHT = {
    "ground": "#fbfcfc", "raised": "#ffffff", "line": "#d3dbde", "ink": "#15242b", "soft": "#4c5d66", "accent": "#0b6e6e",
    "good": "#1a6b35", "good-ground": "#e3f4e8", "bad": "#a3201c", "warn": "#7a4a00", "warn-ground": "#fdf1d8",
    "info": "#1d4f91", "rare": "#7a2f8a",
}  # fmt: skip
DARK = {
    "ground": "#0e1518", "raised": "#151e22", "line": "#33424a", "ink": "#e4ecef", "soft": "#a6b6bd", "accent": "#57c2bf",
    "good": "#7fd99a", "good-ground": "#14301d", "bad": "#ff9d94", "warn": "#f0c067", "warn-ground": "#33270d",
    "info": "#9cc3fa", "rare": "#d7a6e6",
}  # fmt: skip
MONO = "ui-monospace, SFMono-Regular, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
ADVANCE = 0.602
"""Width of a character of these fixed-width faces, in sizes of the type"""


def picture(width: float, height: float, title: str, style: str, parts: Iterable[str]) -> str:
    """The whole file."""
    variables = "".join(f"--{name}:{value};" for name, value in LIGHT.items())
    dark = "".join(f"--{name}:{value};" for name, value in DARK.items())
    shared = (
        f"svg{{{variables}color-scheme:light dark}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}text{{fill:var(--ink)}}"
        f".mono{{font-family:{MONO}}}.sans{{font-family:{SANS}}}"
    )
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(title)}>'
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{shared}{style}</style>", *parts, "</svg>", ""])


def text(x: float, y: float, size: float, words: str, classes: str = "sans") -> str:
    """One line, its blanks kept."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" class="{classes}" xml:space="preserve">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, classes: str, radius: float = 10) -> str:
    """A rectangle with round corners."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" class="{classes}"/>'
