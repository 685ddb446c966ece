"""Text from outside, such as names, labels and messages of a cluster or a file, as it may be shown: no character of it moves a cursor,
rings, changes colours, the title or the direction of text, or ends a line."""

from __future__ import annotations

import json
from typing import Any

TEXT_LENGTH = 256
"""The most characters of a text. Longer than every name that Kubernetes allows (253): only what is no name is
cut."""


def printable(text: str, longest: int | None = None) -> str:
    """Return the text on one line, each character that is not printable (``str.isprintable``: controls, marks of direction, what has no
    width, what Unicode does not assign) as its escape: ``\\x1b``, ``\\u202e``. ``longest``: characters after which it is cut."""
    if not text.isprintable():
        text = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    return text if longest is None or len(text) <= longest else text[: longest - 3] + "..."


def cut(text: str) -> str:
    """Return the text, cut to 256 characters."""
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 3] + "..."


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 node`` or ``2 nodes``. ``plural``: of a noun that takes no s."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def json_text(value: Any, indent: int | None = 2) -> str:
    """Return a value as JSON, readable in every script: only characters that are not printable are escaped, as JSON does it."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return text if text.isascii() and "\x7f" not in text else "".join(map(_in_json, text))


def _in_json(one: str) -> str:
    """Return a character of a JSON text, all of whose characters outside of strings are printable or ends of lines."""
    if one == "\n" or one.isprintable():
        return one
    number = ord(one)
    if number < 0x10000:
        return f"\\u{number:04x}"
    high, low = divmod(number - 0x10000, 0x400)  # RFC 8259, section 7: as a pair of surrogates
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
