"""Lay catalog files over each other: records by their natural key, maps key by key, plain lists by adding
what is new.

So one line in a ``--catalog`` file adds a GPU, another gives a platform its slices, and neither repeats the
shipped data. An overlay removes nothing, and every record remembers the file and place where it was last
written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from catalog.nearest import hint
from catalog.parse.reader import Notes, Record

Key = Callable[[Mapping[str, Any]], object]


def _field(name: str) -> Key:
    return lambda record: record.get(name)


LISTS: Mapping[str, Key | None] = {
    "gpus": _field("model"),
    "machines": lambda record: (record.get("cloud"), record.get("type") or ("of", record.get("model"))),
    "resources": lambda record: record.get("name") or ("pattern", record.get("pattern")),
    "misspellings": _field("wrong"),
    "notAccelerators": _field("name"),
    "measures": _field("name"),
    "acceleratorDomains": _field("domain"),
    "taints": None,
    "spotTaints": None,
    "neverTolerate": _field("key"),
    "protections": lambda record: (record.get("where"), record.get("key")),
    "workloads": _field("name"),
    "graceCaps": _field("name"),
    "between": lambda record: (record.get("group"), record.get("kind")),
    "podlessGroups": _field("group"),
    "excludedNamespaces": _field("name"),
    "retiredFamilies": _field("name"),
    "draDrivers": _field("driver"),
    "labelAliases": _field("old"),
    "otherDrivers": _field("driver"),
    "schedulers": _field("name"),
    "workloadLabels": _field("label"),
    "podMakers": _field("user"),
    "reservedKeys": _field("prefix"),
    "words": lambda record: (record.get("where"), record.get("key")),
}
"""Sections that are lists of records -> the key that distinguishes records; None: the whole record."""
MAPS = ("prices", "clouds", "vendors", "migSets", "platforms", "otherPlatforms", "schemes")

SOURCES = "sources"
"""The section with the sources of facts: for people, and not read by any code."""


def layered(layers: Sequence[tuple[str, object]], notes: Notes) -> Record:
    """Return all ``(name, data)`` layers as one record, later ones over earlier; a name precedes the paths
    of its layer."""
    merged = Record({}, "")
    for name, data in layers:
        for section, value in _sections(name, data, notes).items():
            merged[section] = _section(section, merged.get(section), value)
    return merged


def _sections(name: str, data: object, notes: Notes) -> Mapping[str, Any]:
    """Return the sections of one layer, each a list of maps or a map of maps; anything else is noted and
    left out."""
    prefix = f"{name}: " if name else ""
    if not isinstance(data, Mapping):
        notes.wanted(name or "catalog", "a map of sections such as gpus", data)
        return {}
    found: dict[str, Any] = {}
    for section, value in data.items():
        if section == SOURCES:
            continue
        if section not in LISTS and section not in MAPS:
            notes.append(f"{prefix}{section}: unknown section{hint(str(section), [*LISTS, *MAPS])}")
        elif value is not None:
            shape = _listed if section in LISTS else _mapped
            found[section] = shape(value, f"{prefix}{section}", notes)
    return found


def _listed(value: object, path: str, notes: Notes) -> list[Record]:
    if not isinstance(value, list):
        notes.wanted(path, "a list", value)
        return []
    items = _located(value, path)
    for index, item in enumerate(items):
        if not isinstance(item, Record):
            notes.wanted(f"{path}[{index}]", "a map", item)
    return [item for item in items if isinstance(item, Record)]


def _mapped(value: object, path: str, notes: Notes) -> Record:
    if not isinstance(value, Mapping):
        notes.wanted(path, "a map", value)
        return Record({}, path)
    located = Record({str(name): _located(item, f"{path}.{name}") for name, item in value.items()}, path)
    for name, item in located.items():
        if not isinstance(item, Record):
            notes.wanted(f"{path}.{name}", "a map", item)
    return Record({name: item for name, item in located.items() if isinstance(item, Record)}, path)


def _located(value: Any, path: str) -> Any:
    """Return ``value`` with the place of every map recorded in it."""
    if isinstance(value, Mapping):
        return Record({str(key): _located(item, f"{path}.{key}") for key, item in value.items()}, path)
    if isinstance(value, list):
        return [_located(item, f"{path}[{index}]") for index, item in enumerate(value)]
    return value


def _section(name: str, under: Any, over: Any) -> Any:
    key = LISTS.get(name)
    if under is None or key is None:
        return over if under is None else _laid(under, over)
    return _records(under, over, key)


def _records(under: list[Record], over: list[Record], key: Key) -> list[Record]:
    """Return both lists; a record of ``over`` is merged into the one of ``under`` with the same natural
    key."""
    result = list(under)
    places = {key(record): place for place, record in enumerate(under)}
    for record in over:
        place = places.get(key(record))
        if place is None:
            result.append(record)
        else:
            result[place] = _laid(result[place], record)
    return result


def _laid(under: Any, over: Any) -> Any:
    if isinstance(under, Record) and isinstance(over, Record):
        shared = {key: _laid(under[key], item) if key in under else item for key, item in over.items()}
        return Record({**under, **shared}, over.at)
    if isinstance(under, list) and isinstance(over, list):
        return [*under, *(item for item in over if item not in under)]
    return over
