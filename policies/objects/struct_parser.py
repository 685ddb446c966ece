"""Parse one value by one shape: return what is stored, and collect every mistake in it with its path.

This module knows the shapes, not the kinds: ``definition`` lists the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.names import CatalogNames
from catalog.nearest import hint
from kube.tree import Path
from policies.objects import parts as part
from policies.objects import scalar_parser
from policies.objects.field_types import Field, Items, Kind, Labels, Shape, Struct, TemplateName
from policies.objects.scalar_parser import Leaf, Mistake, wants


class StructReader:
    """Parses one object; ``errors``, ``warnings`` and ``templates`` collect what it found, each as (path,
    text)."""

    def __init__(self, kind: Kind, spec: Struct, names: CatalogNames) -> None:
        self.kind = kind
        self.errors: list[tuple[Path, str]] = []
        self.warnings: list[tuple[Path, str]] = []
        self.templates: list[tuple[Path, str]] = []
        """The GPUNodeTemplates that the object names."""
        self._spec = spec
        self._names = names

    def wrong(self, path: Path, message: str) -> None:
        self.errors.append((path, message))

    def warn(self, path: Path, message: str) -> None:
        self.warnings.append((path, message))

    def read(self, shape: Shape, value: object, path: Path, example: str) -> Any:
        """Return what is stored, or None if the value was not understood (None is never stored).

        ``example``: what to write, ``in: [hopper]``.
        """
        try:
            match shape:
                case Struct():
                    return self._struct(shape, value, path, example)
                case Items():
                    return self._items(shape, value, path, example)
                case Labels():
                    return self._labels(shape, value, path, example)
            return self._leaf(shape, value, path, example)
        except Mistake as mistake:
            return self.wrong(path, str(mistake))

    def _leaf(self, shape: Leaf, value: object, path: Path, example: str) -> Any:
        stored = scalar_parser.parse_scalar(shape, value, example, self._names)
        if warning := scalar_parser.doubt(shape, value, self._names):
            self.warn(path, warning)
        if isinstance(shape, TemplateName):
            self.templates.append((path, stored))
        return stored

    def _items(self, shape: Items, value: object, path: Path, example: str) -> tuple[Any, ...] | None:
        name, _, written = example.partition(": ")
        if not isinstance(value, list):
            single = isinstance(value, str) and not isinstance(shape.of, Struct) and "," not in value
            raise wants("a list", value, f"{name}: [{value}]" if single else example)
        if len(value) < shape.least:
            raise Mistake(f"must have at least one value, found an empty list; write {example}, or remove {name}")
        if len(value) > shape.most:
            raise Mistake(f"has {len(value)} values; at most {shape.most} are allowed")
        read = [self.read(shape.of, item, (*path, number), _first(written)) for number, item in enumerate(value)]
        return None if None in read else tuple(dict.fromkeys(read))

    def _labels(self, shape: Labels, value: object, path: Path, example: str) -> tuple[tuple[str, str], ...] | None:
        if not isinstance(value, dict):
            raise wants("a map", value, example)
        if len(value) < shape.least:
            raise Mistake(f"must have at least one label, found an empty map; write {example}")
        keys = [self.read(part.KEY, key, (*path, key), example) for key in value]
        values = [self.read(part.VALUE, item, (*path, key), example) for key, item in value.items()]
        return None if None in keys + values else tuple(sorted(zip(keys, values, strict=True)))

    def _struct(self, shape: Struct, value: object, path: Path, example: str) -> Any:
        if not isinstance(value, dict):
            raise wants("a map", value, example)
        before = len(self.errors)
        fields = {field.name: field for field in shape.fields if field.of(self.kind)}
        for name in (name for name in value if name not in fields):
            self.wrong((*path, name), self._unknown(name, shape, fields))
        given = {
            field.argument: self.read(field.shape, value[name], (*path, name), field.written())
            for name, field in fields.items()
            if name in value
        }
        self._check_presence(shape, fields, value, path)
        understood = {name: item for name, item in given.items() if item is not None}
        for inside, message in (wrong for rule in shape.rules for wrong in rule(understood, self.kind)):
            self.wrong(path + inside, message)
        return shape.build(**understood) if len(self.errors) == before else None

    def _check_presence(self, shape: Struct, fields: Mapping[str, Field], value: Mapping[str, Any], path: Path) -> None:
        for field in fields.values():
            if field.required and field.name not in value:
                self.wrong(path, f"{field.name} is missing; write {field.written()}")
        if shape.any_of and not any(name in value for name in shape.any_of):
            self.wrong(path, f"must have {' or '.join(shape.any_of)}; write {fields[shape.any_of[0]].written()}")
        if shape.one_of and (found := [name for name in shape.one_of if name in value]) != found[:1]:
            self.wrong(path, f"must have only one of {' and '.join(shape.one_of)}; remove one")
        elif shape.one_of and not found:
            self.wrong(path, f"must have {' or '.join(shape.one_of)}; write {fields[shape.one_of[0]].written()}")

    def _unknown(self, name: str, shape: Struct, fields: Mapping[str, Field]) -> str:
        if name in shape.not_here:
            return f'there is no field "{name}"; {shape.not_here[name]}'
        if other := next((field for field in shape.fields if field.name == name), None):
            return f'a {self.kind} has no "{name}"; only a {" or ".join(other.kinds)} has'
        if homes := self._homes(name):
            return f'unknown field "{name}" here; it belongs in {" or ".join(homes)}'
        return f'unknown field "{name}"{hint(name, fields)}'

    def _homes(self, name: str) -> list[str]:
        """Return the places that have a field of this name: ``spec``, or the maps directly in it."""
        places = {"spec": self._spec} | {f"spec.{top.name}": top.shape for top in self._spec.fields if isinstance(top.shape, Struct)}
        return [place for place, shape in places.items() if any(one.name == name and one.of(self.kind) for one in shape.fields)]


def _first(written: str) -> str:
    """Return the first item of a list as written: ``hopper`` of ``[hopper, ampere]``."""
    inside = written.removeprefix("[").removesuffix("]")
    return inside if inside.startswith("{") else inside.partition(",")[0]
