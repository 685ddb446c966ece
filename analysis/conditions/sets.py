"""The requirements of policies, as sets of which each is one integer and can be intersected: offers of all
platforms, numbers of GPUs, grace periods."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policies.objects.wording import describe_field
from policies.offers.constraints import Compiled, Constraint
from policies.policy import DeviceLimit

MOST_GPUS = 1024
"""Larger numbers of GPUs are treated as this one: no machine has as many."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The requirement of one policy on one thing: offers, numbers of GPUs, or grace periods."""

    by: Compiled
    parts: tuple[tuple[str, int], ...]
    """Pairs of a text (``families in [hopper]``) and the bit set of what is inside."""
    inside: int
    """The intersection of all parts."""

    @property
    def text(self) -> str:
        """Return all parts in words."""
        return " and ".join(text for text, _ in self.parts)


def offers_of(compiled: Compiled, offers: int) -> Demand | None:
    """Return what the policy requires of all these ``offers``, or None if all are allowed.

    The capacity of long runs counts: if a run is long, all of it holds.
    """
    constraints = [c for c in (*compiled.require, compiled.require_long) if c is not None]
    return _demand(compiled, [(_text(c), c.rows) for c in constraints], offers)


def _text(constraint: Constraint) -> str:
    return f"{constraint.text}{' for long runs' if 'longRuns' in constraint.field else ''}"


def counts_of(compiled: Compiled) -> Demand | None:
    """Return what the policy requires of the number of GPUs, or None if any number is allowed."""
    limit = compiled.policy.require.gpus_per_pod
    return None if limit is None else _demand(compiled, list(_counts(limit)), (1 << MOST_GPUS) - 1)


def _counts(limit: DeviceLimit) -> Iterable[tuple[str, int]]:
    """Yield the parts of one limit, in which bit i stands for i + 1 GPUs."""
    if limit.max is not None:
        yield f"gpusPerPod {describe_field('spec.require.gpusPerPod.max', limit.max)}", (1 << min(limit.max, MOST_GPUS)) - 1
    if limit.one_of:
        numbers = {min(number, MOST_GPUS) for number in limit.one_of}
        yield (
            f"gpusPerPod {describe_field('spec.require.gpusPerPod.oneOf', limit.one_of)}",
            sum(1 << (number - 1) for number in numbers if number > 0),
        )


class Graces:
    """The grace periods that suffice to decide which bounds have one in common: every minimum that a policy
    requires, and 0.

    Where bounds have something in common, the longest minimum is in it.
    """

    def __init__(self, policies: Iterable[Compiled]) -> None:
        self._points = sorted({0, *(least for c in policies if (least := c.policy.require.grace_min) is not None)})
        self._everything = (1 << len(self._points)) - 1

    def demand(self, compiled: Compiled) -> Demand | None:
        """Return None if any period is allowed, or if there is only a maximum while no policy sets a
        minimum."""
        least, most = compiled.policy.require.grace_min, compiled.policy.require.grace_max
        if len(self._points) == 1 or (least is None and most is None):
            return None
        parts = []
        if least is not None:
            shorter = (1 << bisect_left(self._points, least)) - 1
            parts.append((f"gracePeriod {describe_field('spec.require.gracePeriod.min', least)}", self._everything & ~shorter))
        if most is not None:
            parts.append(
                (f"gracePeriod {describe_field('spec.require.gracePeriod.max', most)}", (1 << bisect_right(self._points, most)) - 1)
            )
        return _demand(compiled, parts, self._everything)


def _demand(compiled: Compiled, parts: Sequence[tuple[str, int]], everything: int) -> Demand | None:
    if not parts:
        return None
    inside = everything
    for _, part in parts:
        inside &= part
    return Demand(compiled, tuple(parts), inside)


def excluding(one: Demand, other: Demand) -> tuple[str, str]:
    """Return the parts of two demands that have nothing in common; all parts, where only all together have
    nothing."""
    for mine, inside in one.parts:
        for theirs, beside in other.parts:
            if not inside & beside:
                return mine, theirs
    return one.text, other.text


def emptied_by(demands: Sequence[Demand]) -> tuple[Demand, ...]:
    """Return a few demands that have nothing in common, none of which can be left out; () if all have
    something."""
    found: list[Demand] = []
    common, candidates = -1, list(demands)
    while common:
        left = common
        for i, demand in enumerate(candidates):
            left &= demand.inside
            if not left:
                found.append(demand)
                common &= demand.inside
                candidates = candidates[:i]
                break
        else:
            return ()
    return tuple(found)
