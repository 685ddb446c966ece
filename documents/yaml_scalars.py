"""Resolve one YAML scalar as kubectl does (sigs.k8s.io/yaml, goyaml.v2 ``resolve.go``).

yes, no, on, off, y and n are booleans, 1e3 is a number, 010 is eight; dates and 12:30 stay text. NaN and
infinity are rejected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9]*)", re.ASCII)
_LARGEST = 2**64 - 1
"""Larger integers become floats, as in Go."""
_MOST_DIGITS = 70
"""Sign, prefix and 64 binary digits; int() on long text is slow."""
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "y", "Y", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "n", "N", "off", "Off", "OFF"), False),
}
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TYPES: dict[str, Callable[[str], Any]] = {"str": str, "int": lambda text: _number(text), "float": lambda text: float(_number(text))}
_TYPES |= {"bool": lambda text: _WORDS[text], "null": lambda text: None}
TAG = "tag:yaml.org,2002:"


def plain_scalar(text: str) -> Any:
    """Return the value of a plain scalar, as kubectl resolves it. Raises ValueError for NaN and infinity."""
    if text in _WORDS:
        return _WORDS[text]
    return _number(text, text) if text[0] in "0123456789+-." else text


def _number(text: str, otherwise: str | None = None) -> Any:
    bare = text.replace("_", "")
    if _INTEGER.fullmatch(bare) and len(bare) <= _MOST_DIGITS and abs(value := _integer(bare)) <= _LARGEST:
        return value
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(_no_number(text))
    if not _NUMBER.fullmatch(bare):
        if otherwise is None:
            raise ValueError(f'"{text[:40]}" is not a number')
        return otherwise
    if not math.isfinite(number := float(bare)):
        raise ValueError(_no_number(text))
    return number


def _no_number(text: str) -> str:
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    return f'{shown} is not a JSON number; write "{shown}" in quotes if text is meant'


def _integer(text: str) -> int:
    digits = text.lstrip("+-")
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()  # YAML 1.1 and kubectl
    value = int(digits, 8) if octal else int(digits, 0)
    return -value if text[0] == "-" else value


def tagged(tag: str, text: str) -> Any:
    """Return the value of a tagged scalar such as ``!!str 123``. Raises ValueError for tags that no plain
    YAML has."""
    name = tag.removeprefix(TAG)
    if name not in _TYPES or (name == "bool" and not isinstance(_WORDS.get(text), bool)):
        raise ValueError(f"the tag {show_tag(tag)} means nothing here; remove it")
    return _TYPES[name](text)


def show_tag(tag: str) -> str:
    """Return a tag as people write it: ``!!timestamp``."""
    return "!!" + tag.removeprefix(TAG) if tag.startswith(TAG) else tag
