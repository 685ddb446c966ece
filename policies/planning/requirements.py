"""The requirements of one set of policies, whatever pod they apply to: merged once per snapshot and set,
not once per pod."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from policies.offers.constraints import Compiled, Constraint, meet
from policies.offers.selectors import Rendering
from policies.offers.table import AXES, Axis
from policies.planning import merged_settings as settings
from policies.planning.feasibility import everything
from policies.planning.merged_settings import MergedSettings
from policies.pods.annotations import is_long
from policies.pods.permissions import Actor, Calm
from policies.policy import LongRuns
from policies.state.snapshot import Snapshot

T = TypeVar("T")
_OF_ANY, _OF_EACH = 8 * 2**10, 3 * 2**9
"""Bytes that a merged set of policies takes, and for each policy in it, as measured with one to sixteen."""


@dataclass(frozen=True, slots=True)
class Sayable:
    """What is required on one axis, as far as one platform's labels can express it."""

    rows: int
    rendering: Rendering
    """Has no expressions if none are needed or possible."""
    unexpressed: tuple[Constraint, ...] = ()
    """The constraints that are left out because the whole could not be expressed with them."""
    lacking: bool = False
    """True if nodes of the platform do not have what some constraint is about."""
    policies: tuple[str, ...] = ()
    """The policies behind what is expressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """The merged requirements of the policies that apply to a pod, for runs as long as this pod's."""

    policies: tuple[Compiled, ...]
    constraints: tuple[Constraint, ...]
    """The constraints of every ``require``."""
    cluster: Mapping[Axis, tuple[Constraint, ...]]
    """The constraints of the cluster's policies, by axis."""
    own: Mapping[Axis, tuple[Constraint, ...]]
    """The constraints of the namespace's own policies, by axis."""
    required: int
    """The rows that all policies leave."""
    required_by_cluster: int
    """The rows that the cluster's policies leave, whatever the namespace adds."""
    scopes: tuple[tuple[Compiled, ...], tuple[Compiled, ...]]
    """The namespace's own policies, then the cluster's: the order of precedence of defaults."""
    choosing: tuple[str, ...]
    """The policies that have a default about nodes, in that order."""
    default_runs: tuple[LongRuns, ...]
    """The ``longRuns`` of their defaults; each default may depend on how long a pod runs."""
    settings: dict[tuple[Calm, Calm], MergedSettings] = field(default_factory=dict)
    """The merged settings by the actor's (grace, disruption), computed as they are needed."""
    spoken: dict[Hashable, Any] = field(default_factory=dict)
    """The merged defaults: by function (``merged``), or by axis (``policies.planning.precedence`` alone)."""
    rows: dict[Hashable, int] = field(default_factory=dict)
    """Used by ``policies.planning.expressible`` alone: the rows left in any term once all axes are written."""
    whole: dict[Hashable, Sayable | None] = field(default_factory=dict)
    """Used by ``policies.planning.expressible`` alone: the rendering of an axis that a platform uses in
    any term; None: it cannot express all of it."""

    def merged(self, merge: Callable[[Demands], T]) -> T:
        """Return what the function merges of these policies, called once. ``merge`` must be a function
        of a module, or a constant: a snapshot goes to other processes with what is merged."""
        if merge not in self.spoken:
            self.spoken[merge] = merge(self)
        merged: T = self.spoken[merge]
        return merged


def demands(
    snapshot: Snapshot, policies: tuple[Compiled, ...], matches: tuple[Compiled, ...], longest: Fraction | None, actor: Actor
) -> tuple[Demands, MergedSettings]:
    """Return the requirements of these policies for a pod that runs at most this long (seconds), and their
    settings besides placement for this actor. ``matches``: the policies whose defaults apply; ``require``
    is taken from all."""
    merged = snapshot.merged
    key = (policies, matches, actor.in_part, *_long(policies, longest))
    found: Demands | None = merged.get(key)
    if found is None:
        found = _together(snapshot, policies, matches, longest, in_part=actor.in_part)
        merged.keep(key, found, _OF_ANY + _OF_EACH * len(policies))
    calm = actor.grace, actor.disruption
    if calm not in found.settings:
        found.settings[calm] = settings.merge_settings(policies, matches, *calm)
    return found, found.settings[calm]


def _long(policies: Sequence[Compiled], longest: Fraction | None) -> Iterator[bool]:
    for compiled in policies:
        long_runs = compiled.policy.require.long_runs
        if long_runs is not None:
            yield is_long(longest, long_runs)


def _together(
    snapshot: Snapshot, policies: tuple[Compiled, ...], matches: tuple[Compiled, ...], longest: Fraction | None, *, in_part: bool
) -> Demands:
    cluster = tuple(c for c in policies if c.policy.namespace is None)
    own = tuple(c for c in policies if c.policy.namespace is not None)
    axes = tuple(axis for axis in AXES if not (in_part and axis == "sharing"))
    constraints = tuple(_constraints(policies, longest, axes))
    scopes = tuple(c for c in own if c in matches), tuple(c for c in cluster if c in matches)
    of_cluster, of_own = list(_constraints(cluster, longest, axes)), list(_constraints(own, longest, axes))
    return Demands(
        policies=policies,
        constraints=constraints,
        cluster={axis: tuple(c for c in of_cluster if c.axis == axis) for axis in AXES},
        own={axis: tuple(c for c in of_own if c.axis == axis) for axis in AXES},
        required=meet(everything(snapshot), constraints),
        required_by_cluster=meet(everything(snapshot), of_cluster),
        scopes=scopes,
        choosing=tuple(c.policy.id for scope in scopes for c in scope if _chooses_nodes(c)),
        default_runs=tuple(runs for c in matches if (runs := c.policy.default.long_runs) is not None),
    )


def _chooses_nodes(compiled: Compiled) -> bool:
    default = compiled.policy.default
    return bool(compiled.machine or compiled.capacity or compiled.capacity_long or default.mig or default.node_template)


def _constraints(policies: Iterable[Compiled], longest: Fraction | None, axes: Sequence[Axis]) -> Iterator[Constraint]:
    for compiled in policies:
        yield from (constraint for constraint in compiled.require if constraint.axis in axes)
        long_runs = compiled.policy.require.long_runs
        if compiled.require_long is not None and long_runs is not None and is_long(longest, long_runs):
            yield compiled.require_long
