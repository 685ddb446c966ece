"""JSON as Go writes it, where orjson refuses it: however deep somebody nests a part, and whatever numbers and texts are in it.

Fields that take any JSON (a claim's opaque parameters, a CRD's unknown fields, managedFields) are kept by the API server as they come, and
orjson reads 1,024 levels, no number past a double's and no text that is not Unicode: without this, one such object would hide a whole kind
from every replica, in every namespace, and no pod that has it could be judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

import orjson

DEEPEST = 64
"""levels that are read where there are more than orjson reads: no field that anything here looks at has twenty"""
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_MARKS = re.compile(rb'(?:"[^"\\]*+"[^][{}"]*+)++|' + _TEXT + rb"|[][{}]")
"""texts, in which brackets mean nothing, as many at once as stand side by side, and brackets"""
_VALUES = re.compile(
    rb'(?:"[^"\\]*+"[^"0-9-]*+)++|' + _TEXT + rb"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?[eE][-+]?[0-9]+|-?[1-9][0-9]{299,}(?:\.[0-9]+)?"
)
"""texts, and numbers that may be past a double's (1.8e308)"""
_ESCAPES = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u[dD][89a-fA-F]..|.)", re.DOTALL)
"""escapes in a text: two surrogates that make one character, one alone, and all others"""
_LONE = len(rb"\ud800")
_REPLACED = "\ufffd".encode()


def loads(text: bytes) -> Any:
    """The value; where it is too deep, with null for what is below. A surrogate alone, or bytes that are no UTF-8, are U+FFFD, as Go
    reads them; a number that is no double is its own text. Raises ValueError for what is no JSON."""
    try:
        return orjson.loads(text)
    except ValueError:
        return _by_parts(text)


def _by_parts(text: bytes) -> Any:
    flat = b"null".join(_parts(text))
    try:
        return orjson.loads(flat)
    except ValueError:
        return orjson.loads(_VALUES.sub(_readable, _ESCAPES.sub(_escape, flat.decode(errors="replace").encode())))


def _parts(text: bytes) -> Iterator[bytes]:
    """What is between the values that are too deep."""
    depth = kept = 0
    for mark in _MARKS.finditer(text):
        first = text[mark.start()]
        if first in b"[{":
            if depth == DEEPEST:
                yield text[kept : mark.start()]
            depth += 1
        elif first in b"]}":
            depth -= 1
            if depth == DEEPEST:
                kept = mark.end()
    yield text[kept:]


def _readable(value: re.Match[bytes]) -> bytes:
    """A number such that orjson reads it; a text as it is."""
    found = value[0]
    return found if found.startswith(b'"') or _is_finite(found) else b'"%b"' % found


def _escape(escape: re.Match[bytes]) -> bytes:
    return escape[0] if len(escape[0]) != _LONE else _REPLACED


def _is_finite(number: bytes) -> bool:
    return isfinite(float(number))
