"""The shapes of lists and of maps: data only, read by the parser, and by what renders a table of fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from catalog.shapes.scalars import TEXT, UNBOUNDED, Name, Scalar, WordChoice
from kube.tree import Path

Rule = Callable[[Mapping[str, Any], str], Iterator[tuple[Path, str]]]
"""A rule between the fields of one struct: (the fields that were given and understood, the kind of object) -> each
mistake, as (path, message)."""
Merge = Literal["each", "least", "most", "common", "union"]
"""How the values of several policies combine: each by itself, the smallest, the largest, the items of all,
the items of any."""


def distinct(items: Iterable[Any]) -> tuple[Any, ...]:
    """Return the items without those that came before."""
    return tuple(dict.fromkeys(items))


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list, not empty unless ``least`` is 0."""

    of: Shape
    least: int = 1
    most: int = 256
    """The most items, which bounds the cost of the API server's own rules."""
    alone: bool = False
    """True if one item may stand alone, without a list."""
    build: Callable[[Iterable[Any]], Any] = distinct
    """Makes the stored value from the items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """A map with keys of one shape and values of one shape; ``noun`` is for messages: ``label``."""

    keys: Scalar
    of: Shape
    least: int = 0
    noun: str = "entry"
    example: str = ""
    """An example value, to write after a key; empty: messages on values show the example of the whole map."""
    build: Callable[[Iterable[tuple[Any, Any]]], Any] = dict
    """Makes the stored value from the pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    """A map with known fields; ``build`` makes the stored value from those that were given."""

    build: Callable[..., Any]
    fields: tuple[Field, ...]
    rules: tuple[Rule, ...] = ()
    any_of: tuple[str, ...] = ()
    """At least one of these fields must be given."""
    one_of: tuple[str, ...] = ()
    """Exactly one of these fields must be given."""
    not_here: Mapping[str, str] = field(default_factory=dict)
    """Names that people type although they are no fields -> what to do instead."""
    text: Callable[[Any], str] | None = None
    """Renders the stored value where Kubernetes has a notation of its own: ``team=research:NoSchedule``.
    None: field by field."""


Shape = Scalar | Items | Mapped | Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a struct."""

    name: str
    """The name in YAML."""
    shape: Shape
    description: str
    """One or two sentences for the reference and for ``kubectl explain``."""
    example: str
    """An example value, to write after the name: ``{in: [hopper]}``."""
    store: str = ""
    """The argument of ``build`` that takes the value; empty: ``name``."""
    attribute: str | None = None
    """The attribute of the typed object that has the value, ``machine.families``. None: ``argument``;
    empty: the fields within it are attributes of that object."""
    required: bool = False
    default: str | bool | None = None
    kinds: tuple[str, ...] = ()
    """The kinds that have the field; empty: all that have the struct."""
    words: str = ""
    """A template for sentences, ``of {}``; empty: its name and its value."""
    merge: Merge = "each"

    @property
    def argument(self) -> str:
        return self.store or self.name

    def of(self, kind: str) -> bool:
        """Return whether objects of this kind have the field."""
        return not self.kinds or kind in self.kinds

    @property
    def default_note(self) -> str:
        """`` Default: `Audit`.``, to append to the meaning; empty if there is no default."""
        return "" if self.default is None else f" Default: `{'true' if self.default is True else self.default}`."

    def written(self) -> str:
        """Return the field as written in YAML: ``families: {in: [hopper]}``."""
        return f"{self.name}: {self.example}"


def example_of(shape: Shape) -> str:
    """Return a value of this shape as YAML, with words in capitals for what is to be filled in."""
    match shape:
        case Struct():
            return f"{{{', '.join(field.written() for field in shape.fields if field.required or field.name in shape.one_of[:1])}}}"
        case Items():
            return example_of(shape.of) if shape.alone else f"[{example_of(shape.of)}]"
        case Mapped():
            return f"{{{example_of(shape.keys)}: {example_of(shape.of)}}}"
        case WordChoice():
            return shape.values[0]
        case Name():
            return shape.noun.upper().replace(" ", "-")
    return shape.sample


def listed(of: Shape, build: Callable[[Iterable[Any]], Any] = tuple, *, least: int = 0, alone: bool = False) -> Items:
    return Items(of=of, least=least, most=UNBOUNDED, build=build, alone=alone)


def mapped(of: Shape, keys: Scalar = TEXT, build: Callable[[Iterable[tuple[Any, Any]]], Any] = dict) -> Mapped:
    return Mapped(keys=keys, of=of, example=example_of(of), build=build)


def field_of(name: str, shape: Shape = TEXT, *, store: str = "", required: bool = False, example: str = "") -> Field:
    """Return a field that no reference describes."""
    return Field(name=name, shape=shape, store=store, required=required, description="", example=example or example_of(shape))
