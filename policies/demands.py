"""What one set of policies says together, whatever pod it meets: merged once per snapshot and set, not once per pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from policies import wishes
from policies.actor import Actor, Calm
from policies.author import is_long
from policies.compiled import Compiled, Constraint
from policies.offers import AXES, Axis
from policies.placement import everything, meet
from policies.snapshot import Snapshot
from policies.wishes import Wishes

_OF_ANY, _OF_EACH = 8 * 2**10, 3 * 2**9
"""bytes that a set of policies merged takes, and for each policy in it, as measured with one to sixteen"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Of the policies that act on a pod, for runs as long as this pod's."""

    constraints: tuple[Constraint, ...]
    """of every ``require``"""
    cluster: Mapping[Axis, tuple[Constraint, ...]]
    """of the cluster's policies, by axis"""
    own: Mapping[Axis, tuple[Constraint, ...]]
    """of the namespace's own"""
    required: Mapping[str, int]
    """platform -> rows that all of them leave"""
    scopes: tuple[tuple[Compiled, ...], tuple[Compiled, ...]]
    """the namespace's own policies, then the cluster's: the order in which defaults speak"""
    wishes: dict[tuple[Calm, Calm], Wishes] = field(default_factory=dict)
    """for actors of these calms, as they come"""


def demands(
    snapshot: Snapshot, policies: tuple[Compiled, ...], certain: tuple[Compiled, ...], longest: Fraction | None, actor: Actor
) -> tuple[Demands, Wishes]:
    """Of these policies for a pod that runs at most so long (seconds), and what they wish of this actor besides placement. ``certain``:
    those of them whose defaults act; ``require`` is of all."""
    remembered = snapshot.memory.remembered
    key = (policies, certain, *_long(policies, longest))
    found: Demands | None = remembered.get(key)
    if found is None:
        found = _together(snapshot, policies, certain, longest)
        remembered.keep(key, found, _OF_ANY + _OF_EACH * len(policies))
    calm = actor.grace, actor.disruption
    if calm not in found.wishes:
        found.wishes[calm] = wishes.read(policies, certain, *calm)
    return found, found.wishes[calm]


def _long(policies: Sequence[Compiled], longest: Fraction | None) -> Iterator[bool]:
    for compiled in policies:
        long_runs = compiled.policy.require.long_runs
        if long_runs is not None:
            yield is_long(longest, long_runs)


def _together(snapshot: Snapshot, policies: tuple[Compiled, ...], certain: tuple[Compiled, ...], longest: Fraction | None) -> Demands:
    cluster = tuple(c for c in policies if c.policy.namespace is None)
    own = tuple(c for c in policies if c.policy.namespace is not None)
    constraints = tuple(_constraints(policies, longest))
    of_cluster, of_own = list(_constraints(cluster, longest)), list(_constraints(own, longest))
    return Demands(
        constraints=constraints,
        cluster={axis: tuple(c for c in of_cluster if c.axis == axis) for axis in AXES},
        own={axis: tuple(c for c in of_own if c.axis == axis) for axis in AXES},
        required=meet(everything(snapshot), *(c.rows for c in constraints)),
        scopes=(tuple(c for c in own if c in certain), tuple(c for c in cluster if c in certain)),
    )


def _constraints(policies: Iterable[Compiled], longest: Fraction | None) -> Iterator[Constraint]:
    for compiled in policies:
        yield from compiled.require
        long_runs = compiled.policy.require.long_runs
        if compiled.require_long is not None and long_runs is not None and is_long(longest, long_runs):
            yield compiled.require_long
