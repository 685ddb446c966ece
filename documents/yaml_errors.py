"""Translate libyaml's errors into plainer words, with what to type."""

from __future__ import annotations

import yaml

from documents import yaml_placeholders

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
