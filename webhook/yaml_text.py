"""Text to documents, strictly, and as kubectl reads it.

YAML is read from libyaml's events, without PyYAML's constructor, because that one keeps the last of two equal keys, makes
dates of text and sixties of ``12:30``, and is three times slower. Plain words are resolved as kubectl does (sigs.k8s.io/yaml,
goyaml.v2 ``resolve.go``): yes, no, on, off, y and n are booleans, 1e3 is a number, dates stay text.
JSON (a text that begins as a JSON object or list) goes to orjson, and where a key is given twice, which orjson passes over, to the YAML
reader, which says where.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import yaml
from yaml import events as on

from policies.document import Document as Document
from policies.document import InputError as InputError
from policies.document import kind_of
from policies.verdict import Path
from webhook import json_text, yaml_errors, yaml_placeholders, yaml_scalar
from webhook.yaml_placeholders import Placeholders

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the pure one gives the same events, ten times slower
_MOST_COPIED = 10_000
"""Values that aliases may bring in per document; a pod has a few hundred values in all."""
_DEEPEST = 100
"""Levels; a CRD's schema, the deepest that people write, has about 40."""
_TOO_DEEP = f"is nested deeper than {_DEEPEST} levels"

_MARKER = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_NOTHING = re.compile(r"(?:\s*(?:[#%][^\n]*)?\n)*\s*(?:[#%][^\n]*)?")


class _Stop(Exception):
    """The rest of the text cannot be read."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


Problem = tuple[Path, int | None, str]
Read = tuple[Any, list[Problem], Placeholders]
"""A value, why it must not be used, and what is not filled in yet."""


def one_value(text: str) -> Any:
    """The value of a text that is one document; None where it is none, or has mistakes."""
    found, errors = documents(text, "")
    return found[0].value if len(found) == 1 and not errors else None


def documents(text: str, file: str, *, unfilled: bool = False) -> tuple[list[Document], list[InputError]]:
    """The documents of ``text`` that could be read, and what was wrong with the others. Empty documents are skipped.

    One bad document does not hide the others: where YAML gives up, the text is cut at its ``---`` lines and each part read alone.
    ``unfilled``: one with a template's placeholders is none of the others, and says itself where they are.
    """
    text = text.removeprefix("\ufeff")
    if json_text.begins(text) and not _MARKER.search(text):
        reads = [_json(text)]
    else:
        reads = _yaml(text)
    full = [(index, read) for index, read in enumerate(reads, 1) if read != _EMPTY]
    if not full:
        return [], [InputError(file=file, message="has no document; it is empty, or has only comments")]
    found: list[Document] = []
    errors: list[InputError] = []
    for index, (value, problems, placeholders) in full:
        document = Document(file=file, index=index, value=value, only=len(full) == 1)
        errors += [document.error(path, message, line=line) for path, line, message in problems]
        left = yaml_placeholders.unfilled(document, placeholders)
        if not problems and (unfilled or not left):
            found.append(replace(document, unfilled=left))
        elif not unfilled:
            errors += left[:1]
    return found, errors


_EMPTY: Read = (None, [], [])


def _json(text: str) -> Read:
    try:
        value = json_text.value(text)
    except json_text.Twice:  # which the other reader finds, with its place
        return next(iter(_yaml(text)))
    except json_text.Unreadable as error:
        return None, [((), error.line, str(error))], []
    return (None, [((), None, _TOO_DEEP)], []) if json_text.is_deeper(value, _DEEPEST) else (value, [], [])


def _yaml(text: str) -> list[Read]:
    try:
        return list(_reads(text))
    except _Stop:
        return [read for part, line in _parts(text) for read in _part(part, line)]


def _part(text: str, before: int) -> list[Read]:
    try:
        return list(_reads(text, before))
    except _Stop as stop:
        return [(None, [((), stop.line, str(stop))], [])]


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """(text, lines before it) of each document; what stands before the first marker counts only if it says something."""
    cuts = [0, *(marker.start() for marker in _MARKER.finditer(text)), len(text)]
    for start, end in pairwise(cuts):
        if start or not _NOTHING.fullmatch(text, start, end):
            yield text[start:end], text.count("\n", 0, start)


def _reads(text: str, before: int = 0) -> Iterator[Read]:
    """Each document of ``text``; raises _Stop. ``before`` is added to line numbers."""
    try:
        following = _Loader(text).get_event
        while type(event := following()) is not on.StreamEndEvent:
            if type(event) is on.DocumentStartEvent:
                builder = _Builder(following, text, before)
                yield builder.value(following()), builder.problems, builder.placeholders
    except yaml.MarkedYAMLError as error:
        message, line = yaml_errors.told(error, text)
        raise _Stop(message, line + before) from None
    except yaml.reader.ReaderError as error:
        message, line = yaml_errors.unreadable(error, text)
        raise _Stop(message, line + before) from None


class _Builder:
    """Values from events. Recursive: one call per level of the document."""

    def __init__(self, following: Callable[[], Any], text: str, before: int) -> None:
        self._next = following
        self._text = text
        self._before = before
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0
        """values built so far in this document, those that aliases brought in included"""
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
                self._problem(event, f'the key "{key}" is given twice; keep one')
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
        if len(self._path) > _DEEPEST:
            raise _Stop(_TOO_DEEP, self._line(event))
        if event.tag not in (None, "!", yaml_scalar.TAG + tag):
            self._problem(event, f"the tag {yaml_scalar.shown(event.tag)} means nothing here; remove it")

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
            return yaml_scalar.plain(text) if plain else yaml_scalar.tagged(event.tag, text)
        except ValueError as error:
            self._problem(event, str(error))
            return None

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise _Stop(f"found *{event.anchor}, but no &{event.anchor} is complete before it", self._line(event))
        value, size = self._anchors[event.anchor]
        self._count += size - 1
        self._copied += size
        if self._copied > _MOST_COPIED:
            raise _Stop(f"aliases bring in more than {_MOST_COPIED} values; write them out", self._line(event))
        return copy.deepcopy(value)

    def _merge(self, key: Any, merged: dict[str, Any]) -> dict[str, Any]:
        """``<<: *base`` and ``<<: [*first, *second]``: earlier maps win (YAML merge key, as kubectl reads it)."""
        value = self.value(self._next())
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            self._problem(key, f"<< wants a map, or a list of maps; found {kind_of(value)}")
            return merged
        for source in sources:
            merged = {**source, **merged}
        return merged

    def _problem(self, event: Any, message: str) -> None:
        self.problems.append((tuple(self._path), self._line(event), message))

    def _line(self, event: Any) -> int:
        return int(event.start_mark.line) + 1 + self._before
