"""Lay catalog files over each other: records by their natural key, maps key by key, plain lists by adding
what is new.

So one line in a ``--catalog`` file adds a GPU, another gives a platform its slices, and neither repeats the
shipped data. An overlay removes nothing, and every record remembers the file and place where it was last
written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from catalog.nearest import hint
from catalog.parse.records import Record, RecordReader
from catalog.shapes.scalars import ANY_MAP, wants
from catalog.shapes.structs import Field, Items, Mapped, Struct
from kube.tree import Path

KEYS: Mapping[str, tuple[str, ...]] = {
    "machines": ("cloud", "type|model"),
    "resources": ("name|pattern",),
    "taints": (),
    "spotTaints": (),
    "protections": ("where", "key"),
    "between": ("group", "kind"),
    "reservedKeys": ("prefix",),
    "words": ("where", "key"),
}
"""Sections whose records are distinguished by other fields than the first: of ``type|model`` by the one that is set, by all of them
if none is named here."""
SOURCES = "sources"
"""The section with the sources of facts: for people, and not read by any code."""
_NESTED = (dict, list)


def layered(layers: Sequence[tuple[str, object]], sections: Mapping[str, Field], reader: RecordReader) -> Record:
    """Return all ``(name, data)`` layers as one record, later ones over earlier. ``reader`` collects what is no section."""
    empty = {name: [] if isinstance(section.shape, Items) else Record({}, ("", name)) for name, section in sections.items()}
    merged = Record(empty, ("",))
    for name, data in layers:
        if not isinstance(data, Mapping):
            reader.wrong((name or "catalog",), str(wants("a map of sections", data, "gpus: [...]")))
            continue
        for section, value in data.items():
            if section in sections and value is not None:
                records = _located(value, (name, section))
                if _are_records(records, sections[section], (name, section), reader):
                    merged[section] = _section(sections[section], merged[section], records)
            elif section not in (SOURCES, *sections):
                reader.wrong((name, str(section)), f"unknown section{hint(str(section), sections)}")
    return merged


def _are_records(value: object, section: Field, path: Path, reader: RecordReader) -> bool:
    """Return whether a section is a list or a map of maps, as its records have to be; else note why not."""
    assert isinstance(section.shape, Items | Mapped)
    return reader.read(replace(section.shape, of=ANY_MAP, build=list), value, path, section.written()) is not None


def _located(value: Any, path: Path) -> Any:
    """Return ``value`` with the place of every map recorded in it."""
    if isinstance(value, dict):
        items = ((str(key), item) for key, item in value.items())
        return Record({key: _located(item, (*path, key)) if isinstance(item, _NESTED) else item for key, item in items}, path)
    if isinstance(value, list):
        return [_located(item, (*path, index)) if isinstance(item, _NESTED) else item for index, item in enumerate(value)]
    return value


def _section(section: Field, under: Any, over: Any) -> Any:
    """Return both layers of a section; a record of ``over`` is merged into the one of ``under`` with the same natural key."""
    names = _key_fields(section)
    if not names:
        return _laid(under, over)
    result = list(under)
    places = {_key(names, record): place for place, record in enumerate(under)}
    for record in over:
        place = places.get(_key(names, record))
        if place is None:
            result.append(record)
        else:
            result[place] = _laid(result[place], record)
    return result


def _key_fields(section: Field) -> tuple[str, ...]:
    """Return the fields that distinguish the records of a list; none of a map."""
    records = section.shape.of if isinstance(section.shape, Items) else None
    return KEYS.get(section.name, (records.fields[0].name,)) if isinstance(records, Struct) else ()


def _key(names: tuple[str, ...], record: Record) -> tuple[str, ...]:
    return tuple(next((f"{part}={record[part]!r}" for part in name.split("|") if record.get(part) is not None), "") for name in names)


def _laid(under: Any, over: Any) -> Any:
    if isinstance(under, Record) and isinstance(over, Record):
        shared = {key: _laid(under[key], item) if key in under else item for key, item in over.items()}
        return Record({**under, **shared}, over.at)
    if isinstance(under, list) and isinstance(over, list):
        return [*under, *(item for item in over if item not in under)]
    return over
