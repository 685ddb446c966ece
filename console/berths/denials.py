"""The words of a denial, for somebody who may not list every policy."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from console.world.view import View
from policies.messages import TABLE, Phrase
from policies.verdict import Violation


def words(violation: Violation, view: View) -> str:
    """Return the denial as its author reads it; names of policies that may not be listed are left out, with the parts that have them."""
    hidden = {one for one in view.world.policies if not view.shows_policy(one)}
    if not _names(hidden, (violation.policies, violation.fields, violation.found, violation.advice, violation.more)):
        return str(violation)
    if _names(hidden, (violation.found, violation.advice)):
        return f"{violation.code}: {TABLE[violation.code].title}. You may not list the policies that require this."
    return f"{violation.code}: {violation.fact}; {violation.fix}. (required by policies that you may not list)"


def _names(policies: Collection[str], parts: object) -> bool:
    """Return whether a part of a denial has one of these names."""
    return any(one in text for text in _texts(parts) for one in policies)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Phrase):
        for _, one in value.values:
            yield from _texts(one)
    elif isinstance(value, tuple):
        for one in value:
            yield from _texts(one)
