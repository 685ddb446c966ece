"""The shapes of catalog data, derived from the classes that it is read into: the attribute ``usd_per_hour: float | None = None`` is
the optional field ``usdPerHour``, a number."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from catalog.shapes.scalars import TEXT, UNBOUNDED, Flag, Mistake, Number, PatternText, Scalar, Whole, WordChoice, require_text, wants
from catalog.shapes.structs import Field, Items, Rule, Shape, Struct, field_of, listed, mapped
from kube.labels import Possible

Change = Field | Shape | str | tuple[str, Shape] | None
"""What is special about the field of one attribute: its shape, its name, or both; None: no field has it."""


def compiled(text: str, form: str = "{}") -> re.Pattern[str]:
    """Return a regular expression, put into ``form``. Raises Mistake."""
    try:
        return re.compile(form.format(text), re.ASCII)
    except re.error as error:
        raise Mistake(f'"{text}" is not a regular expression: {error}') from None


class LabelValue(Scalar):
    """The value of a label: a number or a boolean loses nothing by being written bare in YAML."""

    def parse(self, value: object, example: str, names: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if isinstance(value, int) else require_text(value, example)


class PossibleValues(Scalar):
    """A list of the values that a label may have, null where the label may be absent."""

    sample = "[null]"

    def parse(self, value: object, example: str, names: Any) -> Possible:
        if not isinstance(value, list) or not value:
            raise wants("a list of the values that the label may have, null for absent", value, example)
        return tuple(None if item is None else LABEL.parse(item, example, names) for item in value)


_FILLED = PatternText(wanted="text", most=UNBOUNDED, build=lambda text: text or None)
"""Of optional text an empty one counts as left out."""
COUNT = Whole(least=1, most=None)
LABEL = LabelValue()
KIND = PatternText(
    wanted="an API group and kind such as batch/Job", pattern="[^/]*/[^/]*", most=UNBOUNDED, build=lambda text: tuple(text.split("/"))
)
"""(group, kind); the core group is empty: ``/Node``."""
REGEX = PatternText(wanted="a regular expression", most=UNBOUNDED, build=compiled)
_SCALARS: Mapping[Any, Scalar] = {str: TEXT, int: Whole(most=None), float: Number(), bool: Flag(), tuple[str, str]: KIND}


def first(items: Iterable[Any]) -> Any:
    """Return the first item, or None."""
    return next(iter(items), None)


def record_of(name: str, shape: Shape = TEXT) -> Struct:
    """Return the shape of a record with one field, stored as the value of that."""
    return Struct(build=lambda value: value, fields=(field_of(name, shape, store="value", required=True),))


def column(name: str, build: Callable[[Iterable[Any]], Any] = tuple) -> Items:
    """Return the shape of a list of records with one field."""
    return listed(record_of(name), build)


def pairs(left: str, right: str) -> Items:
    """Return the shape of a list of records with two fields, stored as a map from one to the other."""
    fields = field_of(left, store="left", required=True), field_of(right, store="right", required=True)
    return listed(Struct(build=lambda left, right: (left, right), fields=fields), dict)


def each(names: str, shape: Shape) -> dict[str, Any]:
    """Return ``shape`` under each of these names, which spaces separate."""
    return dict.fromkeys(names.split(), shape)


def struct_of(
    built: type[Any],
    /,
    *further: Field,
    build: Callable[..., Any] | None = None,
    rules: tuple[Rule, ...] = (),
    one_of: tuple[str, ...] = (),
    **changes: Change,
) -> Struct:
    """Return the shape of a record that a dataclass is built from. A field is required if its attribute has no default.

    ``further``: fields that are no attributes. ``changes``: by attribute.
    """
    hints = get_type_hints(built)
    attributes = [part for part in dataclasses.fields(built) if part.init and changes.get(part.name, "") is not None]
    fields = (_field_of(part, hints[part.name], changes.get(part.name)) for part in attributes)
    return Struct(build=build or built, fields=(*fields, *further), rules=rules, one_of=one_of)


def _field_of(part: dataclasses.Field[Any], hint: Any, change: Change) -> Field:
    if isinstance(change, Field):
        return change
    name, shape = change if isinstance(change, tuple) else (change, None) if isinstance(change, str) else (None, change)
    required = part.default is dataclasses.MISSING and part.default_factory is dataclasses.MISSING
    shape = shape or shape_of(hint)
    if shape is TEXT and not required:
        shape = _FILLED
    return field_of(name or re.sub("_([a-z])", lambda letter: letter[1].upper(), part.name), shape, store=part.name, required=required)


def shape_of(hint: Any) -> Shape:
    """Return the shape of values of a type."""
    args = get_args(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin = get_origin(hint)
    if origin is Literal:
        return WordChoice(values=args)
    if origin in (Union, UnionType):
        return shape_of(next(arg for arg in args if arg is not NoneType))
    if origin in (tuple, frozenset):
        return listed(shape_of(args[0]), origin)
    if origin is not None:
        keys = shape_of(args[0])
        assert isinstance(keys, Scalar), hint
        return mapped(LABEL if args[1] is str else shape_of(args[1]), keys)
    return struct_of(hint)
