"""Parse one value that is no list and no map by its shape: return what is stored, or raise a Mistake that
says what to write."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

from catalog.names import CatalogNames
from catalog.nearest import hint, nearest
from kube import duration, quantity
from kube.tree import kind_of
from policies.objects.field_types import Flag, Memory, Name, PatternText, SliceSize, Span, TemplateName, UsableMemory, Whole, WordChoice

Leaf = PatternText | Name | TemplateName | WordChoice | Flag | Whole | Span | SliceSize | UsableMemory | Memory

_SIZE = re.compile(r"([0-9]{1,4})gb", re.ASCII)
_PROFILE = re.compile(r"[0-9]+g\.([0-9]{1,4}gb).*", re.ASCII)
_MIB, _TIB = 2**20, 2**40


class Mistake(ValueError):
    """A mistake in a value, and what to write."""


def wants(wanted: str, value: object, example: str) -> Mistake:
    """Return, for example, ``must be a list, found the text "spot"; write capacity: [spot]``."""
    return Mistake(f"must be {wanted}, found {kind_of(value)}; write {example}")


def parse_scalar(shape: Leaf, value: object, example: str, names: CatalogNames) -> Any:
    """Return what is stored for ``value``. Raises Mistake.

    ``example`` is what to write: ``mode: Audit``.
    """
    match shape:
        case Flag():
            return _flag(value, example)
        case Whole():
            return _whole(shape, value, example)
        case Span():
            return _span(shape, value)
    if not isinstance(value, str):
        free = isinstance(shape, PatternText) and isinstance(value, bool | int | float)
        raise wants("text", value, "it in quotes" if free else example)
    return _word(shape, value, names)


def _word(
    shape: PatternText | Name | TemplateName | WordChoice | SliceSize | UsableMemory | Memory, value: str, names: CatalogNames
) -> Any:
    match shape:
        case PatternText():
            return _text(shape, value, names)
        case Name():
            return _name(shape, value, names)
        case WordChoice():
            return _choice(shape, value)
        case SliceSize():
            return _slice(value, names.slice_sizes)
        case UsableMemory():
            return _usable(value, names.usable_mib)
        case Memory():
            return _memory(value)
    return value


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def matches(text: PatternText, value: object) -> bool:
    """Return whether ``value`` is text of this shape."""
    if not isinstance(value, str) or len(value) > text.most:
        return False
    return text.pattern is None or _compiled(text.pattern).fullmatch(value) is not None


def _text(shape: PatternText, value: str, names: CatalogNames) -> str:
    if not matches(shape, value):
        raise Mistake(f"{kind_of(value)} is not {shape.wanted}")
    if shape.tolerated and names.never_tolerated(value):
        raise Mistake(f'pods must never tolerate "{value}": it keeps them off nodes that cannot run them; remove it')
    return value


def _name(shape: Name, value: str, names: CatalogNames) -> str:
    known = names.of(shape.known)
    if value not in known and not shape.open:
        raise Mistake(f'unknown {shape.noun} "{value}"{hint(value, known, names.codes(shape.known))}')
    return value


def doubt(shape: Leaf, value: object, names: CatalogNames) -> str | None:
    """Return a warning on a value that is accepted: a name that the catalog lacks, where the list of names
    is open."""
    if not isinstance(shape, Name) or not isinstance(value, str) or value in names.of(shape.known):
        return None
    near = nearest(value, names.of(shape.known), names.codes(shape.known))
    return f'unknown {shape.noun} "{value}", kept as written' + (f'; did you mean "{near}"?' if near else "")


def _choice(shape: WordChoice, value: str) -> Any:
    if value in shape.values:
        return shape.means.get(value, value)
    among = f"one of {', '.join(shape.values)}" if len(shape.values) > 1 else shape.values[0]
    near = nearest(value, shape.values)
    raise Mistake(f"must be {among}, found {kind_of(value)}" + (f'; did you mean "{near}"?' if near else ""))


def _slice(value: str, sizes: list[int]) -> int:
    if (size := _SIZE.fullmatch(value)) and int(size[1]) in sizes:
        return int(size[1])
    profile = _PROFILE.fullmatch(value)
    advice = f"write slice: {profile[1]}" if profile else f"sizes: {', '.join(f'{size}gb' for size in sizes)}"
    raise Mistake(f'"{value}" is not a nominal MIG slice size; {advice}')


def _usable(value: str, verified: list[int]) -> int:
    try:
        wanted = math.ceil(quantity.parse(value) / _MIB)
    except quantity.QuantityError:
        raise wants("an amount of memory", value, "usableMemory: 9.5Gi") from None
    if wanted < 1 or wanted > max(verified, default=0):
        figures = ", ".join(f"{mib / 1024:g}Gi" for mib in verified) or "none"
        raise Mistake(f'no MIG profile is verified to have "{value}"; verified figures: {figures}')
    return wanted


def _memory(value: str) -> int:
    try:
        amount = quantity.parse(value)
    except quantity.QuantityError:
        raise wants("an amount of memory", value, "8Gi") from None
    if not _MIB <= amount <= _TIB:
        raise Mistake(f'must be an amount of memory from 1Mi to 1Ti, found "{value}"')
    return math.ceil(amount)


def _flag(value: object, example: str) -> bool:
    if not isinstance(value, bool):
        raise wants("true or false", value, example)
    return value


def _whole(shape: Whole, value: object, example: str) -> int:
    unit = f" of {shape.unit}" if shape.unit else ""
    if isinstance(value, bool) or not isinstance(value, int):
        raise wants(f"a whole number{unit}", value, example)
    if not shape.least <= value <= shape.most:
        raise Mistake(f"must be a whole number{unit} from {shape.least} to {shape.most}, found {value}")
    return value


def _span(shape: Span, value: object) -> int | str:
    if shape.word is not None and value == shape.word:
        return shape.word
    try:
        return duration.seconds(value)
    except duration.DurationError as error:
        raise Mistake(f"{error}{f', or {shape.word}' if shape.word else ''}") from None
