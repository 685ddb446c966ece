"""JSON of the API server, however deep somebody nests a part of it.

Fields that take any JSON (a claim's opaque parameters, a CRD's unknown fields) are kept by the API server as deep as they come, and orjson
reads 1,024 levels: without this, one such object would hide a whole kind from every replica, in every namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

DEEPEST = 64
"""levels that are read where there are more than orjson reads: no field that anything here looks at has twenty"""
_MARKS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{\]}]')
"""texts, in which brackets mean nothing, and brackets"""


def loads(text: bytes) -> Any:
    """The value; where it is too deep, with null for what is below. Raises ValueError for what is no JSON."""
    try:
        return orjson.loads(text)
    except ValueError:
        parts = list(_parts(text))
        if len(parts) == 1:
            raise
        return orjson.loads(b"null".join(parts))


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
