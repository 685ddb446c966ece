"""Read text into documents, strictly, and as kubectl reads it.

YAML is read from libyaml's events, without PyYAML's constructor, because that one takes the last of two equal
keys, makes dates of text and base-60 numbers of ``12:30``, and is three times slower. Plain words are
resolved as kubectl does (sigs.k8s.io/yaml, goyaml.v2 ``resolve.go``): yes, no, on, off, y and n are booleans,
1e3 is a number, dates stay text.

JSON (a text that begins as a JSON object or list) goes to orjson. If a key is given twice, which orjson
accepts, the text goes to the YAML reader, which reports the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import yaml
from yaml import events as on

from documents import json_reader, yaml_placeholders
from documents.yaml_placeholders import Placeholders
from documents.yaml_values import DEEPEST, TOO_DEEP, Problem, Stop, ValueBuilder
from policies.document import Document as Document
from policies.document import InputError as InputError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the pure one: same events, 10 times slower
_MARKER = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_NOTHING = re.compile(r"(?:\s*(?:[#%][^\n]*)?\n)*\s*(?:[#%][^\n]*)?")


Read = tuple[Any, list[Problem], Placeholders]
"""A value, the problems for which it must not be used, and the placeholders in it."""


def one_value(text: str) -> Any:
    """Return the value of a text that is exactly one document without mistakes, else None."""
    found, errors = documents(text, "")
    return found[0].value if len(found) == 1 and not errors else None


def documents(text: str, file: str, *, unfilled: bool = False) -> tuple[list[Document], list[InputError]]:
    """Return the documents of ``text`` that could be read, and the errors in the others. Empty documents are
    skipped.

    One bad document does not hide the others: where YAML gives up, the text is cut at its ``---`` lines and
    each part read alone. ``unfilled``: documents with a template's placeholders are returned too, and hold
    the errors on these.
    """
    text = text.removeprefix("\ufeff")
    if json_reader.begins(text) and not _MARKER.search(text):
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
        value = json_reader.parse_json(text)
    except json_reader.DuplicateKey:  # the YAML reader finds it again, with its place
        return next(iter(_yaml(text)))
    except json_reader.NotJson as error:
        return None, [((), error.line, str(error))], []
    return (None, [((), None, TOO_DEEP)], []) if json_reader.is_deeper(value, DEEPEST) else (value, [], [])


def _yaml(text: str) -> list[Read]:
    try:
        return list(_reads(text))
    except Stop:
        return [read for part, line in _parts(text) for read in _part(part, line)]


def _part(text: str, before: int) -> list[Read]:
    try:
        return list(_reads(text, before))
    except Stop as stop:
        return [(None, [((), stop.line, str(stop))], [])]


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """Yield (text, lines before it) of each document; text before the first marker counts only if it has
    content."""
    cuts = [0, *(marker.start() for marker in _MARKER.finditer(text)), len(text)]
    for start, end in pairwise(cuts):
        if start or not _NOTHING.fullmatch(text, start, end):
            yield text[start:end], text.count("\n", 0, start)


def _reads(text: str, before: int = 0) -> Iterator[Read]:
    """Yield each document of ``text``; raises Stop. ``before`` is added to line numbers."""
    try:
        following = _Loader(text).get_event
        while type(event := following()) is not on.StreamEndEvent:
            if type(event) is on.DocumentStartEvent:
                builder = ValueBuilder(following, text, before)
                yield builder.value(following()), builder.problems, builder.placeholders
    except yaml.MarkedYAMLError as error:
        message, line = explained(error, text)
        raise Stop(message, line + before) from None
    except yaml.reader.ReaderError as error:
        message, line = unreadable(error, text)
        raise Stop(message, line + before) from None


_PLAINER = (
    ("mapping values are not allowed", 'found ": " where no key can be; check the indentation, or put the text in quotes'),
    ("did not find expected '-' indicator", "found something other than the next list item; indent it like the items before"),
    ("did not find expected key", "expected a key of this map; indent it like the keys before"),
    ("could not find expected ':'", 'found a key without ":"; write key: value'),
    ("did not find expected ',' or '}'", 'found a "{" that is not closed; close it with "}"'),
    ("did not find expected ',' or ']'", 'found a "[" that is not closed; close it with "]"'),
    ("found unexpected ':'", 'found ":" with nothing after it; write null, or a value'),
    ("unexpected end of stream", "found the end of the text inside quotes; close them"),
    ("unexpected document indicator", "found --- inside quotes; close them"),
    ("cannot start any token", "found a character that cannot begin a value; put the text in quotes"),
    ("control characters are not allowed", "found a control character; remove it"),
)
"""Pairs of libyaml's words and what to type; other messages pass unchanged."""


def explained(error: yaml.MarkedYAMLError, text: str) -> tuple[str, int]:
    """Return (message, line of ``text``, 1-based) for YAML that cannot be parsed."""
    mark = error.problem_mark or error.context_mark
    line = mark.line if mark else 0
    lines = [*text.splitlines(), ""]
    here = lines[line : line + 1] or [""]
    if hint := yaml_placeholders.on_line(lines[max(0, line - 1) : line + 1]):
        return hint, line + 1
    if "\t" in here[0][: len(here[0]) - len(here[0].lstrip())]:
        return "found a tab; indent with spaces", line + 1
    return _plainer(error.problem or ""), line + 1


def unreadable(error: yaml.reader.ReaderError, text: str) -> tuple[str, int]:
    """Return (message, line of ``text``, 1-based) for characters that YAML never has; libyaml counts
    bytes."""
    return _plainer(str(error.reason)), text.encode().count(b"\n", 0, error.position) + 1


def _plainer(problem: str) -> str:
    return next((plain for theirs, plain in _PLAINER if theirs in problem), f"is not YAML: {problem}")
