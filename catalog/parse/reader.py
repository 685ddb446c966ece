"""Typed getters over one record of catalog data: each mistake is noted with its path, and reading goes on.

This module knows nothing of GPUs. A getter that cannot read its field notes why and returns a value of the
right type, so that one pass finds every mistake; whoever owns ``Notes`` raises them together and drops what
was built.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from catalog.nearest import hint, nearest

T = TypeVar("T")
C = TypeVar("C", bound=str)

MARKS = ("verified", "derived", "third-party", "unverified")
"""How far a fact may be trusted: read in its primary source; concluded from one; found elsewhere only;
general knowledge."""
_PROVENANCE = ("source", "mark", "note")


class Record(dict[str, Any]):
    """A mapping that records where it was written, for messages: ``at`` is ``gpus[3]`` or ``mine.yaml:
    gpus[0]``."""

    __slots__ = ("at",)

    def __init__(self, items: Mapping[str, Any], at: str) -> None:
        super().__init__(items)
        self.at = at


class Notes(list[str]):
    """Every mistake so far, as ``path: what is wrong``."""

    def wanted(self, path: str, wanted: str, got: object) -> None:
        self.append(f"{path}: expected {wanted}, got {show_yaml(got)}")


def show_yaml(value: object) -> str:
    """Return ``value`` in YAML flow style, at most 60 characters."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = f'"{value}"'
    return text if len(text) <= 60 else text[:57] + "..."


class Fields:
    """The fields of one record. Call a getter for each field, then ``done`` to note those that no getter
    read."""

    def __init__(self, value: object, path: str, notes: Notes) -> None:
        self.path = value.at if isinstance(value, Record) else path
        self.notes = notes
        self._asked: dict[str, None] = dict.fromkeys(_PROVENANCE)
        self._items: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        if not isinstance(value, Mapping):
            notes.wanted(self.path, "a map", value)
        elif self._items.get("mark", "verified") not in MARKS:
            notes.wanted(f"{self.path}.mark", f"one of {', '.join(MARKS)}", self._items["mark"])
        self._readable = isinstance(value, Mapping)

    def __contains__(self, key: str) -> bool:
        return self._items.get(key) is not None

    def at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def raw(self, key: str) -> Any:
        """Return the value unchanged, or None."""
        self._asked[key] = None
        return self._items.get(key)

    def _required(self, key: str, what: str) -> Any:
        value = self.raw(key)
        if value is None and self._readable:
            self.notes.append(f"{self.at(key)}: missing, expected {what}")
        return value

    def text(self, key: str) -> str:
        """Return a required string."""
        value = self._required(key, "a string")
        return "" if value is None else _text(value, self.at(key), self.notes)

    def maybe_text(self, key: str) -> str | None:
        return self.text(key) if key in self else self.raw(key)

    def choice(self, key: str, among: Sequence[C]) -> C:
        """Return a required value that is one of ``among``."""
        value = self.text(key)
        if value and value not in among:
            self.notes.append(f'{self.at(key)}: expected one of {", ".join(among)}, got "{value}"{meant(value, among)}')
        return cast(C, value)

    def maybe_choice(self, key: str, among: Sequence[C]) -> C | None:
        return self.choice(key, among) if key in self else self.raw(key)

    def whole(self, key: str) -> int | None:
        value = self.raw(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            self.notes.wanted(self.at(key), "a whole number", value)
            return None
        return value

    def number(self, key: str) -> float | None:
        value = self.raw(key)
        if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
            self.notes.wanted(self.at(key), "a number", value)
            return None
        return None if value is None else float(value)

    def flag(self, key: str) -> bool:
        value = self.raw(key)
        if value is not None and not isinstance(value, bool):
            self.notes.wanted(self.at(key), "true or false", value)
        return value is True

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings, empty if it is absent."""
        return tuple(_text(item, path, self.notes) for item, path in self.listed(key))

    def listed(self, key: str) -> Iterator[tuple[Any, str]]:
        """Yield each item of a list, with its path."""
        value = self.raw(key)
        if value is not None and not isinstance(value, list):
            self.notes.wanted(self.at(key), "a list", value)
        items = value if isinstance(value, list) else []
        return ((item, f"{self.at(key)}[{index}]") for index, item in enumerate(items))

    def mapped(self, key: str) -> Iterator[tuple[str, Any, str]]:
        """Yield each key and value of a map, with the path."""
        value = self.raw(key)
        if value is not None and not isinstance(value, Mapping):
            self.notes.wanted(self.at(key), "a map", value)
        items = value if isinstance(value, Mapping) else {}
        return ((str(name), item, f"{self.at(key)}.{name}") for name, item in items.items())

    def labels(self, key: str) -> dict[str, str]:
        """Return a map of strings; numbers and booleans are written as in Kubernetes labels (``8``,
        ``true``)."""
        return {name: label_value(item, path, self.notes) for name, item, path in self.mapped(key)}

    def records(self, key: str, read: Callable[[Fields], T]) -> tuple[T, ...]:
        """Return a list of records, each read by ``read``."""
        return tuple(record(item, path, self.notes, read) for item, path in self.listed(key))

    def named(self, key: str, read: Callable[[str, Fields], T]) -> dict[str, T]:
        """Return a map of records, each read by ``read(name, fields)``."""
        return {name: record(item, path, self.notes, partial(read, name)) for name, item, path in self.mapped(key)}

    def done(self) -> None:
        """Note every field that no getter read, with the nearest name of those that were."""
        for key in self._items:
            if key not in self._asked:
                self.notes.append(f"{self.at(str(key))}: unknown field{hint(str(key), self._asked)}")


def record(item: object, path: str, notes: Notes, read: Callable[[Fields], T]) -> T:
    """Return one record read by ``read``, with a note for each field that it did not read."""
    fields = Fields(item, path, notes)
    result = read(fields)
    fields.done()
    return result


def meant(word: str, known: Sequence[str]) -> str:
    """Return ``; did you mean "gpu"?``, or nothing if no known word is near."""
    near = nearest(word, known)
    return f'; did you mean "{near}"?' if near else ""


def label_value(value: object, path: str, notes: Notes) -> str:
    """Return a label's value as a string: ``8`` and ``true`` lose nothing by being written bare in YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else _text(value, path, notes)


def _text(value: object, path: str, notes: Notes) -> str:
    if isinstance(value, str):
        return value
    notes.wanted(path, "a string", value)
    return ""
