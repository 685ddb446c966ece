"""The requirements and defaults of policies besides placement that depend on who the actor is, or that planning reads.

Any other setting is merged by the rule that reads it (``requirements.Demands.merged``). Merging uses only union, longest and shortest,
so that the order of policies never matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from kube.pod import DEADLINE, Pod
from kube.taints import TolerationPattern
from policies.offers.constraints import Compiled
from policies.offers.merging import TightestLimit, by_scope, least, most
from policies.pods.permissions import Actor, Calm
from policies.queues import merged_queues
from policies.queues.merged_queues import MergedQueues


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """How long a pod runs."""

    longest: TightestLimit | None
    """``require.maxRuntime``, the shortest, in seconds."""
    max_runtime: TightestLimit | None
    """``default.maxRuntime`` of the first scope that gives one, the longest in it, in seconds."""


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
    running: Running
    queues: MergedQueues


FORBID = "spec.require.tolerations.forbid"
"""The field of ``forbid``."""
FOREVER = 1 << 40
"""The seconds that stand for Always: 34,000 years, so that "longest" and "shortest" need no special case."""


def merge_settings(policies: Sequence[Compiled], matches: Sequence[Compiled], grace: Calm, disruption: Calm) -> MergedSettings:
    """Merge all settings of these policies besides placement, for an actor with these ``Calm`` values.
    Defaults and grants are taken from the ``matches`` policies only."""
    allows = [c.policy.allow for c in matches if c.policy.namespace is None]
    granted = [pattern for allow in allows for pattern in allow.tolerations]
    tolerate, ungranted = _tolerate(matches, granted)
    return MergedSettings(
        grace=most((c.policy.default.grace, c.policy.id) for c in _for(grace, matches)),
        grace_min=most((c.policy.require.grace_min, c.policy.id) for c in policies),
        grace_max=least((c.policy.require.grace_max, c.policy.id) for c in policies),
        protect=most(
            (FOREVER if p == "Always" else p, c.policy.id) for c in _for(disruption, matches) for p in [c.policy.default.protect_for]
        ),
        protect_max=least((c.policy.require.protection_max, c.policy.id) for c in policies),
        repair=tuple(c.policy.id for c in matches if c.policy.default.repair),
        taints=tuple(c.policy.id for c in matches if c.policy.default.accelerator_taints),
        tolerate=tolerate,
        ungranted=ungranted,
        granted=tuple(granted),
        forbid=tuple((pattern, c.policy.id) for c in policies for pattern in c.policy.require.forbid_tolerations),
        allowed_templates=frozenset(name for allow in allows for name in allow.node_templates),
        running=Running(
            longest=least((c.policy.require.max_runtime, c.policy.id) for c in policies), max_runtime=_max_runtime(_for(grace, matches))
        ),
        queues=merged_queues.merge_queues(policies, matches),
    )


def _max_runtime(policies: Sequence[Compiled]) -> TightestLimit | None:
    limits = (most((c.policy.default.max_runtime, c.policy.id) for c in scope) for scope in by_scope(policies))
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
                by_pattern.setdefault(pattern, []).append(compiled.policy.id)
            else:
                denied.append((pattern, compiled.policy.id))
    ordered = sorted(by_pattern.items(), key=lambda item: (item[0].key, item[0].value or "", item[0].effect or ""))
    return tuple((pattern, tuple(sorted(who))) for pattern, who in ordered), tuple(denied)


def grants(grant: TolerationPattern, pattern: TolerationPattern) -> bool:
    """Return whether a grant of ``allow`` covers a toleration. Unset value and effect mean any in the
    grant; in the pattern they mean 'Exists' and 'every effect', which only an equally open grant covers."""
    return grant.key == pattern.key and grant.value in (None, pattern.value) and grant.effect in (None, pattern.effect)


def seconds_of(pod: Pod) -> int | None:
    """Return the pod's ``activeDeadlineSeconds``; None if it has none, or no whole number."""
    value = pod.spec.get(DEADLINE)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def deadline(running: Running, expected: Fraction | None, actor: Actor) -> TightestLimit | None:
    """Return the ``activeDeadlineSeconds`` that a pod without one gets, in seconds; None: it stays without.

    ``expected``: how long its author expects it to run, in seconds. A default that is shorter does not act; what is
    required does.
    """
    longest = running.longest if actor.floor != "no" else None
    default = running.max_runtime
    if default is None or (expected is not None and default.value < expected):
        return longest
    return longest if longest is not None and longest.value <= default.value else default
