"""The columns of the table of messages, and how a sentence is made from a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["denial", "warning", "notice"]
"""A ``notice`` is about an answer itself, not about a decision."""
Audience = Literal["author", "platform"]
Word = Literal["skipped", "inexpressible"]
Placement = Literal["none", "left", "node", "all"]
Path = tuple[str | int, ...]
Place = Callable[[Path], str]
"""Writes a path of the pod as text."""


class At(NamedTuple):
    """A path of the pod as a value of a sentence; whoever shows the sentence writes it as the path in a
    manifest."""

    path: Path


class Phrase(NamedTuple):
    """One template, by its name in the row or among those that rows share, with its values.

    A value is a text, a number, a path (``At``), another phrase, or a tuple of such, whose format tells how
    it is joined: ``{names:and}``, ``{names:or}``, ``{names:;}``, else by commas.
    """

    name: str
    values: tuple[tuple[str, object], ...] = ()

    def value(self, name: str) -> object:
        """Return the value of this name, or None if the phrase has none."""
        return next((value for key, value in self.values if key == name), None)


def phrase(name: str, /, **values: object) -> Phrase:
    """Return a template, with its values, of the row of the code that it is given to."""
    return Phrase(name, tuple(values.items()))


SHORTER = " shorter"
"""The end of the name of a template that replaces the one named before it if code, fact and fix would be
too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRow:
    """The row of one code."""

    code: str
    title: str
    """The heading of its section in ``docs/codes.md``."""
    kind: Kind
    audience: Audience = "author"
    """The audience of its warnings: the author of the pod, or the platform team, if only they can fix it."""
    word: Word | None = None
    """The outcome that a warning counts as for the policies that it names
    (``berth_policy_outcomes_total``); None: none."""
    placement: frozenset[Placement] | None = None
    """The placements (``policies.pods.actors``) for which an actor may be denied for it; None: all
    actors."""
    of_value: bool = False
    """True for a denial of one value of the pod, beside which no warning about the same value is given."""
    of_edits: bool = False
    """True for a warning about edits, which is not given on a pod that is denied."""
    templates: Mapping[str, str]

    @property
    def page(self) -> str:
        """The anchor as GitHub writes it:
        ``docs/codes.md#berth-101-request-and-limit-of-a-device-differ``."""
        heading = f"{self.code}: {self.title}".lower()
        return f"docs/codes.md#{re.sub(r'[^a-z0-9 -]', '', heading).replace(' ', '-')}"


class _JoinedTexts(tuple[str, ...]):
    """Texts that a template joins."""

    __slots__ = ()

    def __format__(self, how: str) -> str:
        return (f" {how} " if how.isalpha() else f"{how or ','} ").join(self)


def rendered(row: MessageRow, shared: Mapping[str, str], one: Phrase, place: Place) -> str:
    """Return the template of a phrase with its values in it."""
    template = row.templates.get(one.name)
    if template is None:
        template = shared[one.name]
    if not one.values:
        return template
    values = dict(one.values)
    for name, value in one.values:
        if type(value) not in _PLAIN:
            values[name] = _text(row, shared, value, place)
    return template.format_map(values)


_PLAIN = frozenset({str, int})
"""Types of values that need no rendering, tested first: sentences of admitted pods are made too, for the
log."""


def _text(row: MessageRow, shared: Mapping[str, str], value: object, place: Place) -> object:
    match value:
        case Phrase():
            return rendered(row, shared, value, place)
        case At():
            return place(value.path)
        case tuple():
            return _JoinedTexts([item if type(item) is str else str(_text(row, shared, item, place)) for item in value])
    return value


def cut_text(text: str, most: int) -> str:
    """Return at most ``most`` characters, the last three of them dots if the text was longer."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
