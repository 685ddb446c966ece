"""Parse a value by a shape: return what is stored, and collect every mistake in it with its path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from catalog.nearest import hint
from catalog.shapes.scalars import Mistake, Name, Scalar, wants
from catalog.shapes.structs import Field, Items, Mapped, Shape, Struct
from kube.tree import Path


class StructReader:
    """Parses one document; ``errors`` and ``warnings`` collect what it found, each as (path, text).

    ``kind``: the kind of object, of which fields may depend. ``names``: the lists of names for the scalars.
    """

    def __init__(self, kind: str, names: Any) -> None:
        self.kind = kind
        self.errors: list[tuple[Path, str]] = []
        self.warnings: list[tuple[Path, str]] = []
        self.names = names
        self._fields: dict[int, dict[str, Field]] = {}

    def wrong(self, path: Path, message: str) -> None:
        self.errors.append((path, message))

    def warn(self, path: Path, message: str) -> None:
        self.warnings.append((path, message))

    def homes(self, name: str) -> Iterable[str]:
        """Return other places of the document that have a field of this name: ``spec``, for a hint."""
        return ()

    def read(self, shape: Shape, value: object, path: Path, example: str) -> Any:
        """Return what is stored, or None if the value was not understood (None is never stored).

        ``example``: what to write, ``in: [hopper]``.
        """
        try:
            if isinstance(shape, Scalar):
                return self.scalar(shape, value, path, example)
            if isinstance(shape, Struct):
                return self.struct(shape, value, path, example)
            if isinstance(shape, Items):
                return self._items(shape, value, path, example)
            return self.mapped(shape, value, path, example)
        except Mistake as mistake:
            return self.wrong(path, str(mistake))

    def scalar(self, shape: Scalar, value: object, path: Path, example: str) -> Any:
        stored = shape.parse(value, example, self.names)
        if isinstance(shape, Name) and (warning := shape.doubt(value, self.names)):
            self.warn(path, warning)
        return stored

    def _items(self, shape: Items, value: object, path: Path, example: str) -> Any:
        name, _, written = ("", "", example) if example.startswith(("[", "{")) else example.partition(": ")
        if not isinstance(value, list):
            if shape.alone:
                item = self.read(shape.of, value, path, example)
                return None if item is None else shape.build([item])
            single = isinstance(value, str) and not isinstance(shape.of, Struct) and "," not in value
            raise wants("a list", value, f"{name}: [{value}]".removeprefix(": ") if single else example)
        if len(value) < shape.least:
            raise Mistake(f"must have at least one value, found an empty list; write {example}, or remove {name}")
        if len(value) > shape.most:
            raise Mistake(f"has {len(value)} values; at most {shape.most} are allowed")
        first = _first(written)
        read = [self.read(shape.of, item, (*path, number), first) for number, item in enumerate(value)]
        return None if None in read else shape.build(read)

    def mapped(self, shape: Mapped, value: object, path: Path, example: str) -> Any:
        if not isinstance(value, dict):
            raise wants("a map", value, example)
        if len(value) < shape.least:
            raise Mistake(f"must have at least one {shape.noun}, found an empty map; write {example}")
        keys = [self.read(shape.keys, key, (*path, key), example) for key in value]
        values = [
            self.read(shape.of, item, (*path, key), f"{key}: {shape.example}" if shape.example else example) for key, item in value.items()
        ]
        return None if None in keys or None in values else shape.build(zip(keys, values, strict=True))

    def struct(self, shape: Struct, value: object, path: Path, example: str) -> Any:
        if not isinstance(value, dict):
            raise wants("a map", value, example)
        before = len(self.errors)
        fields = self.fields(shape)
        for name in (name for name in value if name not in fields):
            self.wrong((*path, name), self._unknown(name, shape, fields))
        understood = {
            field.store or name: item
            for name, field in fields.items()
            if name in value and (item := self.read(field.shape, value[name], (*path, name), field.written())) is not None
        }
        self._check_presence(shape, fields, value, path)
        for inside, message in (wrong for rule in shape.rules for wrong in rule(understood, self.kind)):
            self.wrong(path + inside, message)
        return shape.build(**understood) if len(self.errors) == before else None

    def fields(self, shape: Struct) -> Mapping[str, Field]:
        """Return the fields of a struct in objects of this kind, by name."""
        if id(shape) not in self._fields:
            self._fields[id(shape)] = {field.name: field for field in shape.fields if field.of(self.kind)}
        return self._fields[id(shape)]

    def _check_presence(self, shape: Struct, fields: Mapping[str, Field], value: Mapping[str, Any], path: Path) -> None:
        for name, field in fields.items():
            if field.required and name not in value:
                self.wrong(path, f"{name} is missing; write {field.written()}")
        if shape.any_of and not any(name in value for name in shape.any_of):
            self.wrong(path, f"must have {' or '.join(shape.any_of)}; write {fields[shape.any_of[0]].written()}")
        if shape.one_of and (given := [name for name in shape.one_of if name in value]) != given[:1]:
            self.wrong(path, f"must have only one of {' and '.join(shape.one_of)}; remove one")
        elif shape.one_of and not given:
            self.wrong(path, f"must have {' or '.join(shape.one_of)}; write {fields[shape.one_of[0]].written()}")

    def _unknown(self, name: str, shape: Struct, fields: Mapping[str, Field]) -> str:
        if name in shape.not_here:
            return f'there is no field "{name}"; {shape.not_here[name]}'
        if other := next((field for field in shape.fields if field.name == name), None):
            return f'a {self.kind} has no "{name}"; only a {" or ".join(other.kinds)} has'
        if homes := self.homes(name):
            return f'unknown field "{name}" here; it belongs in {" or ".join(homes)}'
        return f'unknown field "{name}"{hint(name, fields)}'


def _first(written: str) -> str:
    """Return the first item of a list as written: ``hopper`` of ``[hopper, ampere]``."""
    inside = written.removeprefix("[").removesuffix("]")
    return inside if inside.startswith("{") else inside.partition(",")[0]
