"""Build the value of one YAML document from libyaml's events, and collect every mistake in it."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from typing import Any

from yaml import events as on

from documents import yaml_placeholders
from documents.yaml_placeholders import Placeholders
from kube.tree import Path, kind_of

_MOST_COPIED = 10_000
"""Values that aliases may add to one document; a pod has a few hundred values in all."""
DEEPEST = 100
"""The most levels; a CRD's schema, the deepest document that people write, has about 40."""
TOO_DEEP = f"is nested deeper than {DEEPEST} levels"

Problem = tuple[Path, int | None, str]
"""The path, the line, and what is wrong."""


class Stop(Exception):
    """The rest of the text cannot be read."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class ValueBuilder:
    """Builds values from events. Recursive: one call per level of the document."""

    def __init__(self, following: Callable[[], Any], text: str, before: int) -> None:
        self._next = following
        self._text = text
        self._before = before
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0
        """The values built so far in this document, including those that aliases added."""
        self._copied = 0
        self._path: list[str | int] = []
        self.problems: list[Problem] = []
        self.placeholders: Placeholders = []

    def value(self, event: Any) -> Any:
        kind, first = type(event), self._count
        self._count += 1
        if kind is on.ScalarEvent:
            value = self._scalar(event)
        elif kind is on.MappingStartEvent:
            value = self._placeholder(event) or self._mapping(event)
        elif kind is on.SequenceStartEvent:
            value = self._sequence(event)
        else:
            return self._alias(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._count - first)
        return value

    def _mapping(self, start: Any) -> dict[str, Any]:
        self._enter(start, "map")
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        path, following = self._path, self._next
        while type(event := following()) is not on.MappingEndEvent:
            if type(event) is on.ScalarEvent and event.value == "<<" and event.implicit[0]:
                merged = self._merge(event, merged)
                continue
            key = self._key(event)
            path.append(key)
            if key in result:
                self._problem(event, f'the key "{key}" is set twice; keep one of them')
            result[key] = self.value(following())
            path.pop()
        return {**merged, **result} if merged else result

    def _placeholder(self, start: Any) -> str | None:
        found = yaml_placeholders.text_of(start, self._text, self._next)
        if found is not None:
            self.placeholders.append((tuple(self._path), self._line(start), found))
        return found

    def _sequence(self, start: Any) -> list[Any]:
        self._enter(start, "seq")
        result: list[Any] = []
        path, following = self._path, self._next
        while type(event := following()) is not on.SequenceEndEvent:
            path.append(len(result))
            result.append(self.value(event))
            path.pop()
        return result

    def _enter(self, event: Any, tag: str) -> None:
        if len(self._path) > DEEPEST:
            raise Stop(TOO_DEEP, self._line(event))
        if event.tag not in (None, "!", TAG + tag):
            self._problem(event, f"the tag {show_tag(event.tag)} means nothing here; remove it")

    def _key(self, event: Any) -> str:
        if type(event) is not on.ScalarEvent:
            self._problem(event, "a key must be text; found a list, a map or an alias")
            self.value(event)
            return "?"
        value = self.value(event)
        if not isinstance(value, str):
            kind = {bool: "a boolean", type(None): "nothing"}.get(type(value), "a number")
            self._problem(event, f'a key must be text, and {event.value} is {kind} in YAML; write "{event.value}" in quotes')
            return str(event.value)
        return value

    def _scalar(self, event: Any) -> Any:
        plain, quoted = event.implicit
        text = event.value
        if quoted:
            return text
        try:
            return plain_scalar(text) if plain else tagged(event.tag, text)
        except ValueError as error:
            self._problem(event, str(error))
            return None

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise Stop(f"found *{event.anchor}, but no &{event.anchor} is complete before it", self._line(event))
        value, size = self._anchors[event.anchor]
        self._count += size - 1
        self._copied += size
        if self._copied > _MOST_COPIED:
            raise Stop(f"aliases bring in more than {_MOST_COPIED} values; write them out", self._line(event))
        return copy.deepcopy(value)

    def _merge(self, key: Any, merged: dict[str, Any]) -> dict[str, Any]:
        """Apply ``<<: *base`` or ``<<: [*first, *second]``: earlier maps win (YAML merge key, as kubectl
        reads it)."""
        value = self.value(self._next())
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            self._problem(key, f"<< must be a map, or a list of maps; found {kind_of(value)}")
            return merged
        for source in sources:
            merged = {**source, **merged}
        return merged

    def _problem(self, event: Any, message: str) -> None:
        self.problems.append((tuple(self._path), self._line(event), message))

    def _line(self, event: Any) -> int:
        return int(event.start_mark.line) + 1 + self._before


# --- one scalar, resolved as kubectl does (sigs.k8s.io/yaml, goyaml.v2 ``resolve.go``) -----------------------------------
#
# yes, no, on, off, y and n are booleans, 1e3 is a number, 010 is eight; dates and 12:30 stay text. NaN and infinity are rejected.

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
