"""The shapes that only our objects have, beside those of ``catalog.shapes``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from catalog.names import CatalogNames
from catalog.shapes.scalars import Mistake, PatternText, Scalar, require_text, wants
from kube import duration, quantity

Kind = Literal["ClusterGPUPolicy", "GPUPolicy", "GPUNodeTemplate"]
Reason = Literal["FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden"]
"""The beginning of the API server's message: ``Invalid value: ...:``, ``Required value:``, ``Forbidden:``."""
_SIZE = re.compile(r"([0-9]{1,4})gb", re.ASCII)
_PROFILE = re.compile(r"[0-9]+g\.([0-9]{1,4}gb).*", re.ASCII)
_MIB, _TIB = 2**20, 2**40


class TaintKey(PatternText):
    """The key of a taint that pods are made to tolerate, which must never be one of the catalog's ``never_tolerate``."""

    def parse(self, value: object, example: str, names: CatalogNames) -> str:
        key: str = super().parse(value, example, names)
        if names.never_tolerated(key):
            raise Mistake(f'pods must never tolerate "{key}": it keeps them off nodes that cannot run them; remove it')
        return key


class TemplateName(Scalar):
    """The name of a GPUNodeTemplate."""

    def parse(self, value: object, example: str, names: CatalogNames) -> str:
        return require_text(value, example)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span(Scalar):
    """A duration in Go's grammar, stored as seconds; ``word`` may be written instead of one: ``Always``."""

    word: str | None = None

    def parse(self, value: object, example: str, names: CatalogNames) -> int | str:
        if self.word is not None and value == self.word:
            return self.word
        try:
            return duration.seconds(value)
        except duration.DurationError as error:
            raise Mistake(f"{error}{f', or {self.word}' if self.word else ''}") from None


class SliceSize(Scalar):
    """The nominal size of a MIG profile, ``10gb``; stored as a number."""

    def parse(self, value: object, example: str, names: CatalogNames) -> int:
        text = require_text(value, example)
        if (size := _SIZE.fullmatch(text)) and int(size[1]) in names.slice_sizes:
            return int(size[1])
        profile = _PROFILE.fullmatch(text)
        advice = f"write slice: {profile[1]}" if profile else f"sizes: {', '.join(f'{size}gb' for size in names.slice_sizes)}"
        raise Mistake(f'"{text}" is not a nominal MIG slice size; {advice}')


class UsableMemory(Scalar):
    """A quantity of memory that some profile is verified to have, ``9.5Gi``; stored as MiB, rounded up."""

    def parse(self, value: object, example: str, names: CatalogNames) -> int:
        text = require_text(value, example)
        try:
            wanted = math.ceil(quantity.parse(text) / _MIB)
        except quantity.QuantityError:
            raise wants("an amount of memory", text, "usableMemory: 9.5Gi") from None
        if wanted < 1 or wanted > max(names.usable_mib, default=0):
            figures = ", ".join(f"{mib / 1024:g}Gi" for mib in names.usable_mib) or "none"
            raise Mistake(f'no MIG profile is verified to have "{text}"; verified figures: {figures}')
        return wanted


class Memory(Scalar):
    """An amount of memory from 1Mi to 1Ti, ``8Gi``; stored as bytes."""

    def parse(self, value: object, example: str, names: CatalogNames) -> int:
        text = require_text(value, example)
        try:
            amount = quantity.parse(text)
        except quantity.QuantityError:
            raise wants("an amount of memory", text, "8Gi") from None
        if not _MIB <= amount <= _TIB:
            raise Mistake(f'must be an amount of memory from 1Mi to 1Ti, found "{text}"')
        return math.ceil(amount)


def sorted_pairs(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    return tuple(sorted(pairs))


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
