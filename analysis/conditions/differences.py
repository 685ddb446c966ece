"""Find defaults of one scope that differ on an axis for the same pod, so that neither applies
(``policies.planning.plan``)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from analysis.conditions.reach import Reach
from analysis.conditions.words import MOST_NAMED, list_names
from policies.offers.constraints import Compiled
from policies.pods.annotations import is_long
from policies.policy import LongRuns

MOST_PAIRS = 200_000
"""Pairs that are compared on one axis in one scope: six hundred policies that all differ, in a tenth of a
second."""
STEP = 200
"""Pairs between two steps: 0.2 ms."""


@dataclass(frozen=True, slots=True)
class _Capacity:
    """The capacity that one policy sets by default, which depends on how long a run takes."""

    short: int | None
    long: int | None
    runs: LongRuns | None

    def at(self, seconds: int | None) -> int | None:
        return self.long if self.runs is not None and is_long(seconds, self.runs) else self.short


@dataclass(frozen=True, slots=True)
class _Axis:
    name: str
    value: Callable[[Compiled], Hashable | None]
    """Returns None if the policy sets no default on this axis."""
    fields: Callable[[Compiled, Compiled], str]
    """Returns the fields of the first policy that differ from what the second sets."""


def _capacity(compiled: Compiled) -> _Capacity | None:
    if compiled.capacity is None and compiled.capacity_long is None:
        return None
    short = None if compiled.capacity is None else compiled.capacity.rows
    long = short if compiled.capacity_long is None else compiled.capacity_long.rows
    return _Capacity(short, long, compiled.policy.default.long_runs)


def _capacity_field(compiled: Compiled, other: Compiled) -> str:
    mine, theirs = _capacity(compiled), _capacity(other)
    is_long_alone = compiled.capacity_long is not None and (mine is None or theirs is None or mine.short in (None, theirs.short))
    return f"spec.default.{'longRuns' if is_long_alone else 'capacity'}"


def _machine(compiled: Compiled) -> Hashable | None:
    return tuple((c.field, c.rows) for c in compiled.machine) or None


AXES = (
    _Axis("nodeTemplate", lambda c: c.policy.default.node_template, lambda c, _: "spec.default.nodeTemplate"),
    _Axis("mig", lambda c: c.policy.default.mig, lambda c, _: "spec.default.mig"),
    _Axis("machine", _machine, lambda c, _: " and ".join(constraint.field for constraint in c.machine)),
    _Axis("capacity", _capacity, _capacity_field),
    _Axis("runtimeClass", lambda c: c.policy.default.runtime_class, lambda c, _: "spec.default.runtimeClass"),
    _Axis("priorityClass", lambda c: c.policy.default.priority_class, lambda c, _: "spec.default.priorityClass"),
    _Axis("schedulerName", lambda c: c.policy.default.scheduler_name, lambda c, _: "spec.default.schedulerName"),
    _Axis("queue", lambda c: c.policy.default.queue, lambda c, _: "spec.default.queue"),
    _Axis("topology", lambda c: c.policy.default.topology, lambda c, _: "spec.default.topology"),
)


def _differ(one: Hashable, other: Hashable) -> bool:
    """Return whether two values, neither of which is None, differ for some pod that both policies match."""
    if not isinstance(one, _Capacity) or not isinstance(other, _Capacity):
        return one != other
    turns = [runs.over for runs in (one.runs, other.runs) if runs is not None]
    pairs = ((one.at(seconds), other.at(seconds)) for seconds in (None, 0, *turns, *(turn + 1 for turn in turns)))
    return any(mine is not None and theirs is not None and mine != theirs for mine, theirs in pairs)


@dataclass(slots=True)
class _EqualDefaults:
    """Policies that set the same default for the same pods, all in Enforce or none."""

    value: Hashable
    is_enforced: bool
    """False for policies that only audit: they are compared with those in Enforce, which never count them."""
    members: list[Compiled] = field(default_factory=list)
    against: list[Compiled] = field(default_factory=list)
    """The first of the policies that differ."""
    count: int = 0
    """How many policies differ in all."""
    shared: int = 0
    """Bit set of the namespaces shared with the first policy that differs."""

    def meets(self, other: _EqualDefaults, shared: int) -> None:
        self.shared = self.shared or shared
        self.count += len(other.members)
        self.against.extend(other.members[: MOST_NAMED - len(self.against)])


@dataclass(slots=True)
class Differences:
    """The sentences on differing defaults, by policy."""

    sentences: dict[Compiled, list[str]] = field(default_factory=dict)
    unjudged: dict[Compiled, str] = field(default_factory=dict)
    """The axis on which too many policies differ to compare each with each."""

    def steps(self, scope: Sequence[Compiled], reach: Reach) -> Iterator[None]:
        """Compare the policies of one scope: all of the cluster, or all of one namespace."""
        for axis in AXES:
            groups: dict[Hashable, _EqualDefaults] = {}
            for compiled in scope:
                value = axis.value(compiled)
                if value is not None:
                    is_enforced = compiled.mode == "Enforce"
                    groups.setdefault((value, is_enforced, *reach.like(compiled)), _EqualDefaults(value, is_enforced)).members.append(
                        compiled
                    )
            enforced = [one for one in groups.values() if one.is_enforced]
            trials = [one for one in groups.values() if not one.is_enforced]
            yield
            yield from _compare(((one, other) for i, one in enumerate(enforced) for other in enforced[i + 1 :]), reach)
            yield from _compare(((one, other) for one in trials for other in enforced), reach)
            self._say(axis, enforced, len(enforced) * (len(enforced) - 1) // 2, reach)
            self._say(axis, trials, len(trials) * len(enforced), reach)

    def _say(self, axis: _Axis, alike: Sequence[_EqualDefaults], pairs: int, reach: Reach) -> None:
        for one in alike:
            for compiled in one.members:
                if one.count:
                    self.sentences.setdefault(compiled, []).append(_sentence(axis.fields(compiled, one.against[0]), one, reach))
                elif pairs > MOST_PAIRS:
                    self.unjudged[compiled] = axis.name


def _compare(pairs: Iterable[tuple[_EqualDefaults, _EqualDefaults]], reach: Reach) -> Iterator[None]:
    """Compare pairs, of which the second is in Enforce: it counts for the first, and the first for it if that is in Enforce too."""
    for done, (one, other) in enumerate(islice(pairs, MOST_PAIRS), 1):
        shared = reach.together(one.members[0], other.members[0]) if one.value != other.value else 0
        if shared and _differ(one.value, other.value):
            one.meets(other, shared)
            if one.is_enforced:
                other.meets(one, shared)
        if done % STEP == 0:
            yield


def _sentence(fields: str, one: _EqualDefaults, reach: Reach) -> str:
    others = list_names((c.id for c in one.against), one.count)
    example = reach.namespaces.first(one.shared)
    return f"{fields} differs from {others}, for example in namespace {example}: neither default applies to a pod that both match"
