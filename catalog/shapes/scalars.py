"""The shapes of values that are no list and no map, or whose content is not looked at.

Each parses a value: it returns what is stored, or raises a Mistake that says what to write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from catalog.nearest import hint, nearest
from kube.tree import kind_of


class Mistake(ValueError):
    """A mistake in a value, and what to write."""


def wants(wanted: str, value: object, example: str) -> Mistake:
    """Return, for example, ``must be a list, found the text "spot"; write capacity: [spot]``."""
    return Mistake(f"must be {wanted}, found {kind_of(value)}; write {example}")


def require_text(value: object, example: str) -> str:
    """Return ``value`` if it is text. Raises Mistake."""
    if not isinstance(value, str):
        raise wants("text", value, example)
    return value


class Scalar:
    """A value that is no list and no map."""

    __slots__ = ()
    sample = "TEXT"
    """A value in YAML, in capitals what is to be filled in."""

    def parse(self, value: object, example: str, names: Any) -> Any:
        """Return what is stored for ``value``. Raises Mistake.

        ``example`` is what to write: ``mode: Audit``. ``names``: the lists of names that are known; a ``Name`` calls its
        ``of`` and ``codes``.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternText(Scalar):
    """Text that matches a pattern; ``wanted`` describes it in words: ``a label key``."""

    wanted: str
    pattern: str | None = None
    most: int = 253
    """The most characters that it may have."""
    build: Callable[[str], Any] = str
    """Makes the stored value from the text; it may raise a Mistake."""

    def matches(self, value: object) -> bool:
        """Return whether ``value`` is text of this shape."""
        if not isinstance(value, str) or len(value) > self.most:
            return False
        return self.pattern is None or _compiled(self.pattern).fullmatch(value) is not None

    def parse(self, value: object, example: str, names: Any) -> Any:
        if not isinstance(value, str):
            raise wants("text", value, "it in quotes" if isinstance(value, bool | int | float) else example)
        if not self.matches(value):
            raise Mistake(f"{kind_of(value)} is not {self.wanted}")
        return self.build(value)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(Scalar):
    """One of the known names of a list."""

    noun: str
    """The noun for messages: ``GPU family``."""
    known: str
    """The list: ``families``."""
    open: bool = False
    """True if an unknown name is accepted with a warning."""

    def parse(self, value: object, example: str, names: Any) -> str:
        name = require_text(value, example)
        known = names.of(self.known)
        if name not in known and not self.open:
            meant = names.explain(self.known, name) or hint(name, known, names.codes(self.known))
            raise Mistake(f'unknown {self.noun} "{name}"{meant}')
        return name

    def doubt(self, value: object, names: Any) -> str | None:
        """Return a warning on an unknown name, which is accepted, or None."""
        if not isinstance(value, str) or value in names.of(self.known):
            return None
        near = nearest(value, names.of(self.known), names.codes(self.known))
        return f'unknown {self.noun} "{value}", kept as written' + (f'; did you mean "{near}"?' if near else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordChoice(Scalar):
    """One of a few words, stored as what ``means`` maps it to, else as the word itself."""

    values: tuple[str, ...]
    means: Mapping[str, Any] = field(default_factory=dict)

    def parse(self, value: object, example: str, names: Any) -> Any:
        word = require_text(value, example)
        if word in self.values:
            return self.means.get(word, word)
        among = f"one of {', '.join(self.values)}" if len(self.values) > 1 else self.values[0]
        near = nearest(word, self.values)
        raise Mistake(f"must be {among}, found {kind_of(word)}" + (f'; did you mean "{near}"?' if near else ""))


class Flag(Scalar):
    """A boolean."""

    sample = "true"

    def parse(self, value: object, example: str, names: Any) -> bool:
        if not isinstance(value, bool):
            raise wants("true or false", value, example)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole(Scalar):
    """A whole number within bounds; ``unit`` is for messages: ``GB``."""

    sample = "1"

    least: int = 0
    most: int | None = 1_000_000
    unit: str = ""

    def parse(self, value: object, example: str, names: Any) -> int:
        unit = f" of {self.unit}" if self.unit else ""
        if isinstance(value, bool) or not isinstance(value, int):
            raise wants(f"a whole number{unit}", value, example)
        if self.most is None and value < self.least:
            raise Mistake(f"must be a whole number{unit}, {self.least} or more, found {value}")
        if self.most is not None and not self.least <= value <= self.most:
            raise Mistake(f"must be a whole number{unit} from {self.least} to {self.most}, found {value}")
        return value


class Number(Scalar):
    """A number, stored as a float."""

    sample = "1"

    def parse(self, value: object, example: str, names: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wants("a number", value, example)
        return float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unparsed(Scalar):
    """A value of a type, stored as it is; ``wanted`` describes it in words: ``a map``."""

    of: type[Any]
    wanted: str
    sample: str

    def parse(self, value: object, example: str, names: Any) -> Any:
        if not isinstance(value, self.of):
            raise wants(self.wanted, value, example)
        return value


UNBOUNDED = 2**63
TEXT = PatternText(wanted="text", most=UNBOUNDED)
ANY_MAP = Unparsed(of=dict, wanted="a map", sample="{...}")
ANY_LIST = Unparsed(of=list, wanted="a list", sample="[...]")
