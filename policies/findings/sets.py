"""What policies require, as sets that can be met whole, each in one integer: offers of all platforms, numbers of GPUs, grace periods."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policies import duration
from policies.compiled import Compiled, Constraint
from policies.policy import DeviceLimit
from policies.snapshot import Snapshot

MOST_GPUS = 1024
"""Numbers of GPUs above are taken for this one: no machine has as many."""


class Offers:
    """The rows of all platforms, side by side."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._offset: dict[str, int] = {}
        self.all = 0
        for name, table in snapshot.tables.items():
            self._offset[name] = self.all.bit_length()
            self.all |= table.all << self._offset[name]

    def joined(self, rows: Mapping[str, int]) -> int:
        """One set of what is a set for each platform."""
        found = 0
        for name, offset in self._offset.items():
            found |= rows[name] << offset
        return found


@dataclass(frozen=True, slots=True)
class Demand:
    """What one policy requires of one thing: of offers, or of the number of GPUs."""

    by: Compiled
    parts: tuple[tuple[str, int], ...]
    """(``families in [hopper]``, what is inside)"""
    inside: int
    """of all parts"""


def offers_of(compiled: Compiled, offers: Offers) -> Demand | None:
    """None: anything goes. The capacity of long runs counts: where a run is long, all of it holds."""
    constraints = [c for c in (*compiled.require, compiled.require_long) if c is not None]
    return _demand(compiled, [(_text(c), offers.joined(c.rows)) for c in constraints], offers.all)


def _text(constraint: Constraint) -> str:
    return f"{constraint.text}{' for long runs' if 'longRuns' in constraint.field else ''}"


def counts_of(compiled: Compiled) -> Demand | None:
    """None: any number goes."""
    limit = compiled.policy.require.gpus_per_pod
    return None if limit is None else _demand(compiled, list(_counts(limit)), (1 << MOST_GPUS) - 1)


def _counts(limit: DeviceLimit) -> Iterable[tuple[str, int]]:
    """Bit i is i + 1 GPUs."""
    if limit.max is not None:
        yield f"gpusPerPod max {limit.max}", (1 << min(limit.max, MOST_GPUS)) - 1
    if limit.one_of:
        numbers = {min(number, MOST_GPUS) for number in limit.one_of}
        yield f"gpusPerPod of {list(limit.one_of)}", sum(1 << (number - 1) for number in numbers if number > 0)


class Graces:
    """Grace periods that tell which bounds have one in common: what any policy requires at least, and 0. Where bounds have something in
    common, the longest minimum is in it."""

    def __init__(self, policies: Iterable[Compiled]) -> None:
        self._points = sorted({0, *(least for c in policies if (least := c.policy.require.grace_min) is not None)})
        self._everything = (1 << len(self._points)) - 1

    def demand(self, compiled: Compiled) -> Demand | None:
        """None: any period goes, or only one that is not too long where nothing is too short."""
        least, most = compiled.policy.require.grace_min, compiled.policy.require.grace_max
        if len(self._points) == 1 or (least is None and most is None):
            return None
        parts = []
        if least is not None:
            shorter = (1 << bisect_left(self._points, least)) - 1
            parts.append((f"gracePeriod min {duration.text(least)}", self._everything & ~shorter))
        if most is not None:
            parts.append((f"gracePeriod max {duration.text(most)}", (1 << bisect_right(self._points, most)) - 1))
        return _demand(compiled, parts, self._everything)


def _demand(compiled: Compiled, parts: Sequence[tuple[str, int]], everything: int) -> Demand | None:
    if not parts:
        return None
    inside = everything
    for _, part in parts:
        inside &= part
    return Demand(compiled, tuple(parts), inside)


def excluding(one: Demand, other: Demand) -> tuple[str, str]:
    """The parts of two that have nothing in common; all of them where only together they have nothing."""
    for mine, inside in one.parts:
        for theirs, beside in other.parts:
            if not inside & beside:
                return mine, theirs
    return _all(one), _all(other)


def _all(demand: Demand) -> str:
    return " and ".join(text for text, _ in demand.parts)


def emptied_by(demands: Sequence[Demand]) -> tuple[Demand, ...]:
    """A few that have nothing in common, none of which can be left out; () where all have something."""
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
