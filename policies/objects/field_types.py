"""The shapes of fields in the definition of our objects: data only, read by the parser, the JSON schema and
the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from catalog.names import Known
from kube.tree import Path

Kind = Literal["ClusterGPUPolicy", "GPUPolicy", "GPUNodeTemplate"]
Rule = Callable[[Mapping[str, Any], Kind], Iterator[tuple[Path, str]]]
"""A rule between the fields of one struct: (the fields that were given and understood, the kind) -> each
mistake, as (path, message)."""
Merge = Literal["each", "least", "most", "common", "union"]
"""How the values of several policies combine: each by itself, the smallest, the largest, the items of all,
the items of any."""
Reason = Literal["FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden"]
"""The beginning of the API server's message: ``Invalid value: ...:``, ``Required value:``, ``Forbidden:``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternText:
    """Text that matches a pattern; ``wanted`` describes it in words: ``a label key``."""

    wanted: str
    pattern: str | None = None
    most: int = 253
    """The most characters that it may have."""
    tolerated: bool = False
    """True for a taint key that pods are made to tolerate, which must never be one of the catalog's
    ``never_tolerate``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name from one of the catalog's lists."""

    noun: str
    """The noun for messages: ``GPU family``."""
    known: Known
    open: bool = False
    """True if an unknown name is accepted with a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateName:
    """The name of a GPUNodeTemplate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordChoice:
    """One of a few words, stored as what ``means`` maps it to, else as the word itself."""

    values: tuple[str, ...]
    means: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A boolean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number within bounds; ``unit`` is for messages: ``GB``."""

    least: int = 0
    most: int = 1_000_000
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A duration in Go's grammar, stored as seconds; ``word`` may be written instead of one: ``Always``."""

    word: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSize:
    """The nominal size of a MIG profile, ``10gb``; stored as a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsableMemory:
    """A quantity of memory that some profile is verified to have, ``9.5Gi``; stored as MiB, rounded up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """An amount of memory from 1Mi to 1Ti, ``8Gi``; stored as bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list, not empty unless ``least`` is 0; values given twice count once."""

    of: Shape
    least: int = 1
    most: int = 256
    """The most items, which bounds the cost of the API server's own rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """A map of label keys to label values, stored as sorted pairs."""

    least: int = 0


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


Shape = PatternText | Name | TemplateName | WordChoice | Flag | Whole | Span | SliceSize | UsableMemory | Memory | Items | Labels | Struct


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
    kinds: tuple[Kind, ...] = ()
    """The kinds that have the field; empty: all that have the struct."""
    words: str = ""
    """A template for sentences, ``of {}``; empty: its name and its value."""
    merge: Merge = "each"

    @property
    def argument(self) -> str:
        return self.store or self.name

    def of(self, kind: Kind) -> bool:
        """Return whether objects of this kind have the field."""
        return not self.kinds or kind in self.kinds

    @property
    def default_note(self) -> str:
        """`` Default: `Audit`.``, to append to the meaning; empty if there is no default."""
        return "" if self.default is None else f" Default: `{'true' if self.default is True else self.default}`."

    def written(self) -> str:
        """Return the field as written in YAML: ``families: {in: [hopper]}``."""
        return f"{self.name}: {self.example}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cel:
    """One rule that the API server evaluates itself: an entry of ``x-kubernetes-validations``."""

    rule: str
    """An expression that is true of valid objects; ``self`` is the map, or the value."""
    message: str
    """The message: what is wrong, and what to write."""
    message_expression: str = ""
    """CEL for a message that holds values; if it fails, the API server uses ``message``."""
    field: str = ""
    """The path of the field that is reported, ``.match.workloads``; empty: ``self``."""
    reason: Reason = "FieldValueInvalid"
    kinds: tuple[Kind, ...] = ()
    """The kinds that have the rule; empty: all that have the struct."""
