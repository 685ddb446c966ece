"""The few shapes of which the definition of our objects is made. Data only: the parser, the JSON schema and the reference read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from policies.verdict import Path

Kind = Literal["ClusterGPUPolicy", "GPUPolicy", "GPUNodeTemplate"]
Rule = Callable[[Mapping[str, Any], Kind], Iterator[tuple[Path, str]]]
"""What must hold between the fields of one struct: (the fields that were given and understood, the kind) -> what is wrong, and where."""
Known = Literal["families", "vendors", "models", "instanceFamilies", "workloads", "migProfiles"]
"""Lists of names that the catalog has."""
Reason = Literal["FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden"]
"""How the API server begins the message: ``Invalid value: ...:``, ``Required value:``, ``Forbidden:``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Text that a pattern describes; ``wanted`` says it in words: ``a label key``."""

    wanted: str
    pattern: str | None = None
    most: int = 253
    """characters"""
    tolerated: bool = False
    """a taint key that pods are made to tolerate: never one of the catalog's ``never_tolerate``"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name that the catalog has."""

    noun: str
    """``GPU family``"""
    known: Known
    open: bool = False
    """True: an unknown name is a warning and kept"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The name of a GPUNodeTemplate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of a few words. ``means`` maps the word to what is stored, else the word itself is."""

    values: tuple[str, ...]
    means: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """true or false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number within bounds; ``unit`` for messages: ``GB``."""

    least: int = 0
    most: int = 1_000_000
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A duration in Go's grammar, stored as seconds; ``word`` is written instead of one: ``Always``."""

    word: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSize:
    """The nominal size of a MIG profile, ``10gb``; stored as a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsableMemory:
    """A quantity of memory that some profile is verified to have, ``9.5Gi``; stored as MiB, rounded up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list, not empty unless ``least`` is 0; values given twice count once."""

    of: Shape
    least: int = 1
    most: int = 256
    """items; bounds what the API server's own rules may cost"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """A map of label keys to label values, stored as sorted pairs."""

    least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    """A map with known fields. ``build`` makes the stored value from those that were given."""

    build: Callable[..., Any]
    fields: tuple[Field, ...]
    rules: tuple[Rule, ...] = ()
    any_of: tuple[str, ...] = ()
    """at least one of these fields; all of ``one_of`` at most once"""
    one_of: tuple[str, ...] = ()
    """exactly one of these fields"""
    not_here: Mapping[str, str] = field(default_factory=dict)
    """what people type that is no field, and what to do instead"""


Shape = Text | Name | Template | Choice | Flag | Whole | Span | SliceSize | UsableMemory | Items | Labels | Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a struct."""

    name: str
    """as in YAML"""
    shape: Shape
    about: str
    """one or two sentences for the reference and for ``kubectl explain``"""
    example: str
    """what to write after the name: ``{in: [hopper]}``"""
    store: str = ""
    """argument of ``build``; empty: ``name``"""
    required: bool = False
    default: str | bool | None = None
    kinds: tuple[Kind, ...] = ()
    """which kinds have it; empty: all that have the struct"""

    @property
    def argument(self) -> str:
        return self.store or self.name

    def of(self, kind: Kind) -> bool:
        """Whether objects of this kind have the field."""
        return not self.kinds or kind in self.kinds

    def written(self) -> str:
        """``families: {in: [hopper]}``"""
        return f"{self.name}: {self.example}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cel:
    """One rule as the API server judges it itself: an entry of ``x-kubernetes-validations``."""

    rule: str
    """true of what is right; ``self`` is the map, or the value"""
    message: str
    """what is wrong, and what to write"""
    said: str = ""
    """CEL for a message that holds values; where it fails, ``message`` is said"""
    field: str = ""
    """the field to blame, ``.match.workloads``; empty: ``self``"""
    reason: Reason = "FieldValueInvalid"
    kinds: tuple[Kind, ...] = ()
    """which kinds have the rule; empty: all that have the struct"""
