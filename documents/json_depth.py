"""Parsing of JSON that Go writes and orjson rejects: of any nesting depth, and with any numbers and strings
in it.

The API server stores fields that take any JSON (a claim's opaque parameters, a CRD's unknown fields,
managedFields) as they come, while orjson parses at most 1,024 levels, no number outside the range of a double
and no string that is not Unicode: without this module, one such object would hide a whole kind from every
replica, in every namespace, and no pod that has it could be judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

import orjson

DEEPEST = 64
"""Levels that are parsed when there are more than orjson accepts: no field that Berth reads is twenty levels
deep."""
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_MARKS = re.compile(rb'(?:"[^"\\]*+"[^][{}"]*+)++|' + _TEXT + rb"|[][{}]")
"""Matches strings, in which brackets have no meaning (adjacent strings at once), and single brackets."""
_VALUES = re.compile(
    rb'(?:"[^"\\]*+"[^"0-9-]*+)++|' + _TEXT + rb"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?[eE][-+]?[0-9]+|-?[1-9][0-9]{299,}(?:\.[0-9]+)?"
)
"""Matches strings, and numbers that may be outside the range of a double (1.8e308)."""
_ESCAPES = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u[dD][89a-fA-F]..|.)", re.DOTALL)
"""Matches escapes in a string: a surrogate pair, a lone surrogate, and all others."""
_LONE = len(rb"\ud800")
_REPLACED = "\ufffd".encode()


def loads(text: bytes) -> Any:
    """Parse JSON.

    In a value that is too deep for orjson, everything below DEEPEST levels is null. A lone surrogate and
    bytes that are not UTF-8 become U+FFFD, as in Go; a number that does not fit a double becomes a string of
    its digits. Raises ValueError for anything that is not JSON.
    """
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
    """Yield the parts of the text between the values that are too deep."""
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
    """Return a string as it is, and a number in a form that orjson parses."""
    found = value[0]
    return found if found.startswith(b'"') or _is_finite(found) else b'"%b"' % found


def _escape(escape: re.Match[bytes]) -> bytes:
    return escape[0] if len(escape[0]) != _LONE else _REPLACED


def _is_finite(number: bytes) -> bool:
    return isfinite(float(number))
