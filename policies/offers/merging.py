"""Merge what several policies set to one value, with the policies that set it.

Of amounts the largest or the smallest counts, so that the order of policies never matters. Of names the namespace's own policies decide
before the cluster's, and those of one scope must agree: otherwise none of them acts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from policies.messages import phrase
from policies.offers.constraints import Compiled
from policies.policy import Default
from policies.verdict import Remark, at_field

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class NamedValue(Generic[T]):
    """The name that the policies of the first scope that speaks give to a field."""

    value: T | None
    """None: they differ, so none of them acts."""
    policies: tuple[str, ...]

    def differs(self, field: str, rule: str) -> Remark:
        """Return the remark that the policies differ on ``default.FIELD``, so that none of them acts."""
        found = phrase("text", policies=self.policies, axis=field)
        return Remark(code="BERTH-202", found=found, rule=rule, fields=at_field(f"spec.default.{field}", self.policies))


def by_scope(policies: Iterable[Compiled]) -> tuple[list[Compiled], list[Compiled]]:
    """Return the namespace's own policies, and the cluster's."""
    own: list[Compiled] = []
    cluster: list[Compiled] = []
    for compiled in policies:
        (cluster if compiled.policy.namespace is None else own).append(compiled)
    return own, cluster


def first_given(scopes: Iterable[Sequence[Compiled]], value: Callable[[Default], T | None]) -> list[tuple[Compiled, T]]:
    """Return the policies of the first of these scopes that has such a default, and what each gives; [] where none has."""
    for scope in scopes:
        given = [(c, found) for c in scope if (found := value(c.policy.default)) is not None]
        if given:
            return given
    return []


def merge_named(scopes: Iterable[Sequence[Compiled]], name: Callable[[Default], T | None]) -> NamedValue[T] | None:
    """Return what the policies of the first of these scopes that gives any give; None: none does."""
    given = first_given(scopes, name)
    if not given:
        return None
    values = {value for _, value in given}
    return NamedValue(values.pop() if len(values) == 1 else None, tuple(c.id for c, _ in given))
