"""Shapes that are derived from classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from catalog.parse.fields import COUNT, KIND, LABEL, PossibleValues, compiled, shape_of, struct_of
from catalog.shapes.scalars import TEXT, Flag, Mistake, Number, Whole, WordChoice
from catalog.shapes.struct_parser import StructReader
from catalog.shapes.structs import Struct, field_of, listed, mapped


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A part of ``Truck``."""

    model: str
    power_kw: int | None = None


@dataclass(frozen=True, kw_only=True)
class Truck:
    """Something with an attribute of most types."""

    name: str
    color: str = "red"
    fuel: Literal["diesel", "none"] | None = None
    engines: tuple[Engine, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    owner: tuple[str, str] | None = None
    old: bool = False
    cost: float | None = None
    seen: int = field(default=0, init=False)


def read(shape: Struct, value: Any) -> tuple[Any, list[str]]:
    """What is stored, and the messages."""
    reader = StructReader("", None)
    return reader.read(shape, value, (), ""), [message for _, message in reader.errors]


def test_the_fields_of_a_record_are_the_attributes_of_its_class() -> None:
    """In camel case; those without a default are required, and a list of records is a list of their shapes."""
    shape = struct_of(Truck)
    assert [(part.name, part.store, part.required) for part in shape.fields[:4]] == [
        ("name", "name", True), ("color", "color", False), ("fuel", "fuel", False), ("engines", "engines", False),
    ]  # fmt: skip
    value = {"name": "a", "color": "", "engines": [{"model": "m", "powerKw": 3}], "marks": {"a": 8, "b": True}, "owner": "g/K", "cost": 2}
    assert read(shape, value) == (
        Truck(name="a", engines=(Engine(model="m", power_kw=3),), marks={"a": "8", "b": "true"}, owner=("g", "K"), cost=2.0),
        [],
    )
    assert read(shape, {"seen": 1})[1] == [
        'unknown field "seen"; known: color, cost, engines, fuel, marks, name, old, owner',
        "name is missing; write name: TEXT",
    ]


def test_a_field_may_differ_from_its_attribute() -> None:
    """In its name, its shape, both or not at all; further fields go to the function that builds the value."""
    shape = struct_of(Engine, field_of("note"), build=dict, model=("type", COUNT), power_kw="powerKW")
    assert [(part.name, part.store, part.shape) for part in shape.fields] == [
        ("type", "model", COUNT), ("powerKW", "power_kw", Whole(most=None)), ("note", "", TEXT),
    ]  # fmt: skip
    assert read(struct_of(Engine, model=None, build=dict), {}) == ({}, [])


@pytest.mark.parametrize(
    ("hint", "shape"),
    [
        (str, TEXT),
        (tuple[str, str], KIND),
        (Literal["a", "b"], WordChoice(values=("a", "b"))),
        (tuple[str, ...], listed(TEXT)),
        (frozenset[str], listed(TEXT, frozenset)),
        (Mapping[str, str], mapped(LABEL)),
        (Mapping[Literal["a"], tuple[str, ...]], mapped(listed(TEXT), keys=WordChoice(values=("a",)))),
    ],
)
def test_the_shape_of_a_type(hint: Any, shape: object) -> None:
    """Values of a map of texts are values of labels."""
    assert shape_of(hint) == shape


def test_the_shape_of_a_number_and_of_a_boolean() -> None:
    """None, beside another type, is a field that is left out."""
    assert [type(shape_of(hint)) for hint in (float | None, bool)] == [Number, Flag]


def test_a_label_may_be_absent() -> None:
    """Null stands for that, in a list that is not empty."""
    assert PossibleValues().parse(["a", None, 1], "", None) == ("a", None, "1")
    with pytest.raises(Mistake, match=r"null for absent, found a list; write a: \[null\]"):
        PossibleValues().parse([], "a: [null]", None)


def test_a_regular_expression_is_ascii_only() -> None:
    r"""``\d`` means ten digits."""
    assert compiled(r"\d", "^{}$") == re.compile(r"^\d$", re.ASCII)
