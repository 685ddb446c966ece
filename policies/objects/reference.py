"""Render the reference page of our objects, from ``definition``, as Markdown (docs/reference.md)."""

from __future__ import annotations

from collections.abc import Iterator

from policies.objects import definition
from policies.objects.field_types import (
    Choice,
    Field,
    Flag,
    Items,
    Kind,
    Labels,
    Memory,
    Name,
    Rule,
    Shape,
    SliceSize,
    Span,
    Struct,
    Template,
    Text,
    UsableMemory,
    Whole,
)
from policies.policy import API_VERSION

_HEAD = f"""# Reference: the objects of `{API_VERSION}`

<!-- Made by `make generate` from policies/objects/definition/, not by hand. -->

Fields that are not listed are errors, as are empty lists where a value is wanted, and every message names the file, the document
and the path. Durations are Go's: `2h`, `90s`, `1h30m`. GPU families, models, MIG profiles and workloads are the catalog's:
`berth gpus` lists them. A policy with a mistake is left out; the others act.
"""


def reference_markdown() -> str:
    """Return the whole page, ending with a newline."""
    return "\n".join([_HEAD, *(line for kind in definition.KINDS for line in _kind(kind))])


def _kind(kind: Kind) -> Iterator[str]:
    yield f"## {kind}\n"
    yield f"{definition.ABOUT[kind]}\n"
    twin = next((other for other in definition.KINDS if definition.SPECS[other] is definition.SPECS[kind]), kind)
    if twin != kind:
        lacks = [path for path, field in _fields(definition.SPECS[kind], "spec") if not field.of(kind)]
        yield f"The fields of {twin}, without {' and '.join(f'`{path}`' for path in lacks)} and what is below them.\n"
        return
    yield "| field | type | example | meaning |"
    yield "|---|---|---|---|"
    yield from (_row(path, field) for path, field in _fields(definition.SPECS[kind], "spec"))
    yield ""
    rules = [f"- `{path}`: {text}" for path, text in _rules(definition.SPECS[kind], "spec")]
    yield from (["Between fields:\n", *rules, ""] if rules else [])


def _fields(shape: Struct, path: str) -> Iterator[tuple[str, Field]]:
    for field in shape.fields:
        inside = f"{path}.{field.name}"
        yield inside, field
        if isinstance(field.shape, Struct):
            yield from _fields(field.shape, inside)
        elif isinstance(field.shape, Items) and isinstance(field.shape.of, Struct):
            yield from _fields(field.shape.of, f"{inside}[]")


def _rules(shape: Struct, path: str) -> Iterator[tuple[str, str]]:
    """Return the rules between fields, each once, with the path of the struct where it first applies."""
    first: dict[Rule, str] = {}
    for where, struct in [(path, shape), *_structs(shape, path)]:
        for rule in struct.rules:
            first.setdefault(rule, where)
    return ((where, (rule.__doc__ or "").strip()) for rule, where in first.items())


def _structs(shape: Struct, path: str) -> Iterator[tuple[str, Struct]]:
    for inside, field in _fields(shape, path):
        of = field.shape.of if isinstance(field.shape, Items) else field.shape
        if isinstance(of, Struct):
            yield inside, of


def _row(path: str, field: Field) -> str:
    notes = "**Required.** " if field.required else ""
    return f"| `{path}` | {_type(field.shape)} | `{field.written()}` | {notes}{field.about}{field.default_note} |"


def _type(shape: Shape) -> str:
    match shape:
        case Items():
            return f"list of {_type(shape.of)}"
        case Struct():
            return "map"
        case Labels():
            return "map of labels"
        case Flag():
            return "true or false"
        case Choice():
            return " or ".join(f"`{value}`" for value in shape.values)
        case Whole():
            return f"whole number ({shape.unit})"
    return _word_type(shape)


def _word_type(shape: Text | Name | Template | Span | SliceSize | UsableMemory | Memory) -> str:
    match shape:
        case Text():
            return shape.wanted.removeprefix("a ")
        case Name():
            return f"{shape.noun} (any)" if shape.open else shape.noun
        case Template():
            return "name of a GPUNodeTemplate"
        case Span():
            return f"duration or `{shape.word}`" if shape.word else "duration"
        case SliceSize():
            return "nominal size"
    return "quantity of memory"
