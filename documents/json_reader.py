"""Parse JSON with orjson, which silently takes the last of two equal keys: duplicate keys are detected
here."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable
from typing import Any

import orjson

_BEGINS = re.compile(r'\s*(?:\{\s*["}]|\[\s*["\[{\]])')
_MOST_CHECKED = 2**23
"""Characters of the longest text that is searched for duplicate keys, at 30 MB/s: longer than a manifest,
shorter than a dump of a cluster."""


class NotJson(ValueError):
    """The text is not JSON. ``line`` is 1-based."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class DuplicateKey(ValueError):
    """A key is given twice in one map."""


def begins(text: str) -> bool:
    """Return whether a text begins as a JSON object or list."""
    return bool(_BEGINS.match(text))


def parse_json(text: str) -> Any:
    """Return the one value of a JSON text. Raises Unreadable and Twice."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise NotJson(f"is not JSON: {error.msg}; column {error.colno}", error.lineno) from None
    if len(text) <= _MOST_CHECKED:
        _check(text)
    return found


def _check(text: str) -> None:
    with contextlib.suppress(RecursionError):  # nested deeper than any caller accepts
        json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise DuplicateKey


def is_deeper(value: object, most: int) -> bool:
    """Return whether a value is nested deeper than ``most`` levels."""
    level = [value]
    for _ in range(most + 1):
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
