"""A YAML writer for JSON-like values with a fixed layout.

Berth has its own writer for two reasons: the diff needs the same layout on both sides, with unchanged parts
written once (``documents.diff`` walks two trees at the same time), and PyYAML's writer alone would use up
the time allowed for 1,000 pods. Lists are at the indent of their key, as in kubectl's output; nothing is
wrapped; multi-line text is a block (``|``).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import yaml

_WORDS = re.compile(r"-{0,2}[A-Za-z/_$](?:[!-~]| (?=[!-~]))*")
_MEASURES = re.compile(r"\d+(?:\.\d+)?(?:m|n|u|k|[KMGTP]i?|Ei|ms|s|h|d)|\d+\.\d+\.\d+(?:[.\w-]*[\w])?", re.ASCII)
_RESERVED = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
"""Words that YAML 1.1 parsers (PyYAML, Kubernetes' own) do not read as strings."""
_WIDE = 2**30
"""A line width at which PyYAML folds no line."""


def yaml_lines(value: Any) -> list[str]:
    """Return the whole value as lines, without line ends."""
    out: list[str] = []
    emit(" ", value, " ", out)
    return [line[1:] for line in out]


def write_yaml(value: Any) -> str:
    """Return the whole value as YAML text that ends in a line end."""
    return "\n".join(yaml_lines(value)) + "\n"


def emit(head: str, value: Any, pad: str, out: list[str]) -> None:
    """Append the lines of ``value``.

    ``head`` is the text before it: a mark of one character (`` ``, ``-``, ``+``), the indent, then ``key:``
    (a map or list starts on the next line) or ``-`` (it starts on the same line), or nothing at the top.
    ``pad`` is mark and indent.
    """
    if value and isinstance(value, dict):
        lead, inner = open_map(head, pad, out)
        for key, item in value.items():
            emit(f"{lead}{scalar(key)}:", item, inner, out)
            lead = inner
    elif value and isinstance(value, list):
        lead, inner = open_list(head, pad, out)
        for item in value:
            emit(lead + "-", item, inner, out)
            lead = inner
    else:
        _leaf(head, value, pad, out)


def open_map(head: str, pad: str, out: list[str]) -> tuple[str, str]:
    """Return the text before the first key, and before the others; write the head if it is a line of its
    own."""
    if head == pad:
        return head, pad
    inner = pad + "  "
    return _opened(head, inner, out), inner


def open_list(head: str, pad: str, out: list[str]) -> tuple[str, str]:
    """Return the text before the first item, and before the others; write the head if it is a line of its
    own."""
    inner = pad + "  " if head.endswith("-") and head != pad else pad
    return _opened(head, inner, out), inner


def _opened(head: str, inner: str, out: list[str]) -> str:
    if head.endswith("-") and len(head) > 1:
        return head + " "
    if len(head) > 1:
        out.append(head)
    return inner


def _leaf(head: str, value: Any, pad: str, out: list[str]) -> None:
    if isinstance(value, str) and "\n" in value:
        _block(head, value, pad, out)
        return
    between = " " if len(head) > 1 else ""
    out.append(head + between + scalar(value))


def _block(head: str, value: str, pad: str, out: list[str]) -> None:
    """Write multi-line text as a literal block where YAML can express it so, else quoted on one line."""
    rows = value.removesuffix("\n").split("\n")
    if value[0] in " \n\t" or len(head) < 2 or not all(row.replace("\t", " ").isprintable() for row in rows):
        out.append(f"{head}{' ' if len(head) > 1 else ''}{_quoted(value, chr(34))}")
        return
    ended = value.endswith("\n")
    sign = "|-" if not ended else "|" if rows[-1] else "|+"
    out.append(f"{head} {sign}")
    out.extend(f"{pad}  {row}" if row else pad[0] for row in rows)


def scalar(value: Any) -> str:
    """Return a key or scalar value, quoted only if a YAML parser would read it as something else."""
    if isinstance(value, str):
        return _text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[]"
    return _quoted(value, None)


@lru_cache(maxsize=8192)
def _text(value: str) -> str:
    if _WORDS.fullmatch(value):
        plain = ": " not in value and " #" not in value and value[-1] != ":" and value.lower() not in _RESERVED
    else:
        plain = _MEASURES.fullmatch(value) is not None
    return value if plain else _quoted(value, "'" if value.isprintable() else '"')


def _quoted(value: Any, style: str | None) -> str:
    written: str = yaml.dump(value, Dumper=yaml.SafeDumper, default_style=style, width=_WIDE, allow_unicode=True)
    written = written.removesuffix("\n").removesuffix("\n...")
    if written.isprintable():
        return written
    # PyYAML escapes controls, but neither marks of direction nor what has no width; both are in double quotes here, where \\u is known.
    return "".join(one if one.isprintable() else f"\\u{ord(one):04X}" if ord(one) < 0x10000 else f"\\U{ord(one):08X}" for one in written)
