"""Amounts that several policies set: the largest or the smallest, with the policies that set it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TightestLimit:
    """The tightest of several limits, with the policies that set it."""

    value: int
    policies: tuple[str, ...]


def most(values: Iterable[tuple[int | None, str]]) -> TightestLimit | None:
    """Return the largest of (value, policy); None if no policy sets one."""
    return _extreme(values, largest=True)


def least(values: Iterable[tuple[int | None, str]]) -> TightestLimit | None:
    """Return the smallest of (value, policy); None if no policy sets one."""
    return _extreme(values, largest=False)


def _extreme(values: Iterable[tuple[int | None, str]], *, largest: bool) -> TightestLimit | None:
    given = [(value, who) for value, who in values if value is not None]
    if not given:
        return None
    value = (max if largest else min)(value for value, _ in given)
    return TightestLimit(value, tuple(sorted(who for v, who in given if v == value)))
