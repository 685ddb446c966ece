"""HTML of pages: every value is escaped, and bounded, by construction."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis.reviews.review import flatten_text
from documents.printable import counted

FOLDER = Path(__file__).resolve().parent.parent
STATIC = FOLDER / "static"
LONGEST = 2000
"""Characters of one value on a page: a denial has some 300, the scheduler's sentence about ten reasons 400."""


class CopiedText(str):
    """A text of many lines that somebody typed or that is to be copied. It is escaped as all others are."""

    __slots__ = ()


def _shown(value: Any) -> Any:
    """Return a value as a page shows it: texts on one line, without control characters and marks of direction, and cut where no honest one
    ends."""
    if isinstance(value, str) and not isinstance(value, Markup | CopiedText):
        return flatten_text(value, LONGEST)
    return value


MOST_TYPED = 512 * 2**10
"""Characters of a text of many lines: a manifest of the largest form, with all that is written into it."""


def _typed(value: object) -> CopiedText:
    """Return a text of many lines, its indentation kept, without control characters and marks of direction."""
    text = str(value)[:MOST_TYPED]
    return CopiedText(text if text.isascii() and text.isprintable() else "".join(c if c.isprintable() or c == "\n" else " " for c in text))


def _usd(value: float | None) -> str:
    """Return dollars: ``$12.40``, ``$1,204``; a dash if they are not known."""
    if value is None:
        return "–"
    return f"${value:,.2f}" if abs(value) < 100 else f"${value:,.0f}"


def _moment(text: str) -> str:
    """Return a time of the API server's for people: ``2026-11-24 08:00:00 UTC``; what is none, as it is."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{found.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if found.tzinfo else text


def _digest() -> str:
    """Return a name for what is under ``static``, so that a browser may keep it for ever."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(STATIC.iterdir()) if file.is_file())).hexdigest()[:12]


VERSION = _digest()


def environment() -> Environment:
    """Return the environment of all templates."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["usd"] = _usd
    made.filters["counted"] = counted
    made.filters["moment"] = _moment
    made.filters["typed"] = _typed
    made.globals |= {"static": f"/static/{VERSION}", "now": lambda: datetime.now(UTC)}
    return made
