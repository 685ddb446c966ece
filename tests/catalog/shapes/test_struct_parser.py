"""Parsing a value by a shape: what is stored, and what is said of each mistake."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.shapes.scalars import ANY_LIST, ANY_MAP, TEXT, Flag, Name, Number, PatternText, Scalar, Whole, WordChoice
from catalog.shapes.struct_parser import StructReader
from catalog.shapes.structs import Items, Mapped, Shape, Struct, example_of, field_of, listed, mapped
from kube.tree import dotted


class Names:
    """One list of names."""

    def of(self, known: str) -> frozenset[str]:
        return frozenset({"hopper", "ampere"})

    def codes(self, known: str) -> frozenset[str]:
        return frozenset()

    def explain(self, known: str, name: str) -> str:
        return ""


FAMILY = Name(noun="GPU family", known="families")
HOST = Struct(
    build=dict,
    any_of=("cpu", "gpu", "tpu"),
    fields=(field_of("name", required=True), field_of("cpu", Whole(most=None)), field_of("gpu", FAMILY), field_of("tpu", Flag())),
)


def parse(shape: Shape, value: object) -> tuple[Any, list[str]]:
    """What is stored, and the mistakes as ``path: message``."""
    reader = StructReader("", Names())
    stored = reader.read(shape, value, ("x",), f"x: {example_of(shape)}")
    return stored, [f"{dotted(path)}: {message}" for path, message in (*reader.errors, *reader.warnings)]


@pytest.mark.parametrize(
    ("shape", "value", "stored"),
    [
        (listed(TEXT, alone=True), "a", ("a",)),
        (listed(TEXT, alone=True), ["a", "a"], ("a", "a")),
        (listed(TEXT, frozenset), ["a", "a"], frozenset("a")),
        (Items(of=TEXT), ["a", "b", "a"], ("a", "b")),
        (mapped(Number()), {"a": 1}, {"a": 1.0}),
        (Mapped(keys=TEXT, of=TEXT, build=sorted), {"b": "1", "a": "2"}, [("a", "2"), ("b", "1")]),
        (PatternText(wanted="a pair", pattern="[^/]*/[^/]*", build=lambda text: text.split("/")), "a/b", ["a", "b"]),
        (WordChoice(values=("on", "off"), means={"on": 1}), "on", 1),
        (ANY_MAP, {"a": [None]}, {"a": [None]}),
        (ANY_LIST, [None], [None]),
        (HOST, {"name": "a", "tpu": False}, {"name": "a", "tpu": False}),
    ],
)
def test_what_is_stored(shape: Shape, value: object, stored: object) -> None:
    """A list and a map are built from what was understood of their items."""
    assert parse(shape, value) == (stored, [])


@pytest.mark.parametrize(
    ("shape", "value", "mistakes"),
    [
        (listed(TEXT, alone=True), 5, ["x: must be text, found the number 5; write it in quotes"]),
        (listed(TEXT), "a", ['x: must be a list, found the text "a"; write x: [a]']),
        (listed(listed(TEXT)), ["a"], ['x[0]: must be a list, found the text "a"; write [a]']),
        (mapped(listed(TEXT)), {"k": "a"}, ['x.k: must be a list, found the text "a"; write k: [a]']),
        (mapped(TEXT, keys=FAMILY), {"hoper": "a"}, ['x.hoper: unknown GPU family "hoper"; did you mean "hopper"?']),
        (Whole(most=None, least=1), 0, ["x: must be a whole number, 1 or more, found 0"]),
        (Whole(unit="GB"), -1, ["x: must be a whole number of GB from 0 to 1000000, found -1"]),
        (Number(), True, ["x: must be a number, found the boolean true; write x: 1"]),
        (ANY_MAP, [], ["x: must be a map, found a list; write x: {...}"]),
        (Name(noun="family", known="", open=True), "hoper", ['x: unknown family "hoper", kept as written; did you mean "hopper"?']),
        (HOST, {}, ["x: name is missing; write name: TEXT", "x: must have cpu or gpu or tpu; write cpu: 1"]),
        (HOST, {"name": "a", "gpus": 1, "cpu": 1}, ['x.gpus: unknown field "gpus"; did you mean "gpu"?']),
    ],
)
def test_a_mistake_has_its_path_and_what_to_write(shape: Shape, value: object, mistakes: list[str]) -> None:
    """All of them are collected, an open name with its doubt."""
    assert parse(shape, value)[1] == mistakes


def test_exactly_one_of_several_fields() -> None:
    """None, and two of them, are mistakes."""
    shape = Struct(build=dict, one_of=("a", "b", "c"), fields=tuple(map(field_of, "abc")))
    assert parse(shape, {})[1] == ["x: must have a or b or c; write a: TEXT"]
    assert parse(shape, {"a": "1", "c": "2"})[1] == ["x: must have only one of a and b and c; remove one"]


def test_an_example_shows_what_is_required() -> None:
    """Lists, maps and fields, in YAML."""
    assert example_of(mapped(listed(HOST), keys=FAMILY)) == "{GPU-FAMILY: [{name: TEXT}]}"
    assert [example_of(shape) for shape in (Flag(), Number(), ANY_MAP, ANY_LIST, listed(TEXT, alone=True))] == [
        "true", "1", "{...}", "[...]", "TEXT",
    ]  # fmt: skip


def test_a_scalar_says_how_it_is_parsed() -> None:
    """The base has no parser of its own."""
    with pytest.raises(NotImplementedError):
        Scalar().parse("a", "", None)
