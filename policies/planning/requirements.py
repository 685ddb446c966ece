"""The requirements and defaults of one set of policies, whatever pod they apply to: merged once per snapshot and set, not once per pod.

``MergedSettings`` has those besides placement that depend on who the actor is, or that planning reads. Any other setting is merged by the
rule that reads it (``Demands.merged``). Merging uses only union, longest and shortest, so that the order of policies never matters.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import attrgetter
from typing import Any, TypeVar

from kube.taints import TolerationPattern
from policies.offers.constraints import Compiled, Constraint, meet
from policies.offers.merging import NamedValue, TightestLimit, by_scope, least, merge_named, most
from policies.offers.selectors import Rendering
from policies.offers.table import AXES, Axis
from policies.planning.feasibility import everything
from policies.planning.queues import MergedQueues, merge_queues
from policies.pods.actors import Actor, Calm
from policies.pods.annotations import is_long
from policies.policy import LongRuns
from policies.state.snapshot import Snapshot

T = TypeVar("T")
_OF_ANY, _OF_EACH = 8 * 2**10, 3 * 2**9
"""Bytes that a merged set of policies takes, and for each policy in it, as measured with one to sixteen."""
FORBID = "spec.require.tolerations.forbid"
"""The field of ``forbid``."""
FOREVER = 1 << 40
"""The seconds that stand for Always: 34,000 years, so that "longest" and "shortest" need no special case."""


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
class MergedSettings:
    grace: TightestLimit | None
    """``default.gracePeriod``, the longest, in seconds."""
    grace_min: TightestLimit | None
    """``require.gracePeriod.min``, the longest, in seconds, whoever the actor is."""
    grace_max: TightestLimit | None
    protect: TightestLimit | None
    """``default.protectFor``, the longest, in seconds; FOREVER for Always."""
    protect_max: TightestLimit | None
    repair: tuple[str, ...]
    """The policies that ask for request := limit."""
    taints: tuple[str, ...]
    """The policies that ask to tolerate accelerator taints."""
    tolerate: tuple[tuple[TolerationPattern, tuple[str, ...]], ...]
    ungranted: tuple[tuple[TolerationPattern, str], ...]
    """Tolerations of namespaces' own policies that no ClusterGPUPolicy allows, with the policy."""
    granted: tuple[TolerationPattern, ...]
    """``allow.tolerations`` of the cluster's policies."""
    forbid: tuple[tuple[TolerationPattern, str], ...]
    allowed_templates: frozenset[str]
    longest_run: TightestLimit | None
    """``require.maxRuntime``, the shortest, in seconds."""
    max_runtime: TightestLimit | None
    """``default.maxRuntime`` of the first scope that gives one, the longest in it, in seconds."""
    queues: MergedQueues


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
    """The merged defaults: by function (``merged``), by attribute (``named``), or by axis (``policies.planning.plan`` alone)."""
    rows: dict[Hashable, int] = field(default_factory=dict)
    """Used by ``policies.planning.affinity_terms`` alone: the rows left in any term once all axes are written."""
    whole: dict[Hashable, Sayable | None] = field(default_factory=dict)
    """Used by ``policies.planning.affinity_terms`` alone: the rendering of an axis that a platform uses in
    any term; None: it cannot express all of it."""

    def merged(self, merge: Callable[[Demands], T]) -> T:
        """Return what the function merges of these policies, called once. ``merge`` must be a function
        of a module, or a constant: a snapshot goes to other processes with what is merged."""
        if merge not in self.spoken:
            self.spoken[merge] = merge(self)
        merged: T = self.spoken[merge]
        return merged

    def named(self, attribute: str) -> NamedValue[str] | None:
        """Return the name that the policies give in one attribute of ``policy.Default``, looked for once."""
        if attribute not in self.spoken:
            self.spoken[attribute] = merge_named(self.scopes, attrgetter(attribute))
        name: NamedValue[str] | None = self.spoken[attribute]
        return name


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
        found.settings[calm] = merge_settings(policies, matches, *calm)
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
        choosing=tuple(c.id for scope in scopes for c in scope if _chooses_nodes(c)),
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


# --- besides placement ------------------------------------------------------------------------------------------------


def merge_settings(policies: Sequence[Compiled], matches: Sequence[Compiled], grace: Calm, disruption: Calm) -> MergedSettings:
    """Merge all settings of these policies besides placement, for an actor with these ``Calm`` values.
    Defaults and grants are taken from the ``matches`` policies only."""
    allows = [c.policy.allow for c in matches if c.policy.namespace is None]
    granted = [pattern for allow in allows for pattern in allow.tolerations]
    tolerate, ungranted = _tolerate(matches, granted)
    return MergedSettings(
        grace=most((c.policy.default.grace, c.id) for c in _for(grace, matches)),
        grace_min=most((c.policy.require.grace_min, c.id) for c in policies),
        grace_max=least((c.policy.require.grace_max, c.id) for c in policies),
        protect=most((FOREVER if p == "Always" else p, c.id) for c in _for(disruption, matches) for p in [c.policy.default.protect_for]),
        protect_max=least((c.policy.require.protection_max, c.id) for c in policies),
        repair=tuple(c.id for c in matches if c.policy.default.repair),
        taints=tuple(c.id for c in matches if c.policy.default.accelerator_taints),
        tolerate=tolerate,
        ungranted=ungranted,
        granted=tuple(granted),
        forbid=tuple((pattern, c.id) for c in policies for pattern in c.policy.require.forbid_tolerations),
        allowed_templates=frozenset(name for allow in allows for name in allow.node_templates),
        longest_run=least((c.policy.require.max_runtime, c.id) for c in policies),
        max_runtime=_max_runtime(_for(grace, matches)),
        queues=merge_queues(policies, matches),
    )


def _max_runtime(policies: Sequence[Compiled]) -> TightestLimit | None:
    limits = (most((c.policy.default.max_runtime, c.id) for c in scope) for scope in by_scope(policies))
    return next(filter(None, limits), None)


def _for(calm: Calm, policies: Sequence[Compiled]) -> Sequence[Compiled]:
    """Return the policies whose grace or protection applies to this actor: all, those that name its
    workload, or none."""
    if calm == "named":
        return [c for c in policies if c.policy.match.workloads]
    return policies if calm == "yes" else ()


_Granted = tuple[tuple[TolerationPattern, tuple[str, ...]], ...]


def _tolerate(
    policies: Sequence[Compiled], granted: Sequence[TolerationPattern]
) -> tuple[_Granted, tuple[tuple[TolerationPattern, str], ...]]:
    by_pattern: dict[TolerationPattern, list[str]] = {}
    denied: list[tuple[TolerationPattern, str]] = []
    for compiled in policies:
        for pattern in compiled.policy.default.tolerate:
            if compiled.policy.namespace is None or any(grants(g, pattern) for g in granted):
                by_pattern.setdefault(pattern, []).append(compiled.id)
            else:
                denied.append((pattern, compiled.id))
    ordered = sorted(by_pattern.items(), key=lambda item: (item[0].key, item[0].value or "", item[0].effect or ""))
    return tuple((pattern, tuple(sorted(who))) for pattern, who in ordered), tuple(denied)


def grants(grant: TolerationPattern, pattern: TolerationPattern) -> bool:
    """Return whether a grant of ``allow`` covers a toleration. Unset value and effect mean any in the
    grant; in the pattern they mean 'Exists' and 'every effect', which only an equally open grant covers."""
    return grant.key == pattern.key and grant.value in (None, pattern.value) and grant.effect in (None, pattern.effect)


def deadline(settings: MergedSettings, expected: Fraction | None, actor: Actor) -> TightestLimit | None:
    """Return the ``activeDeadlineSeconds`` that a pod without one gets, in seconds; None: it stays without.

    ``expected``: how long its author expects it to run, in seconds. A default that is shorter does not act; what is
    required does.
    """
    longest = settings.longest_run if actor.floor != "no" else None
    default = settings.max_runtime
    if default is None or (expected is not None and default.value < expected):
        return longest
    return longest if longest is not None and longest.value <= default.value else default
