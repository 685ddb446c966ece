"""Find defaults outside what policies of the same scope, and of the cluster, require or allow: which part of
them has no effect, and because of which policy.

Requirements clip only if they are enforced, or are the policy's own: an audited policy is judged alone, on
top of the enforced ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from analysis.conditions.reach import Reach
from analysis.conditions.words import MOST_NAMED, list_names
from kube.taints import TolerationPattern
from policies.objects.wording import describe_field, describe_value, field_at, value_at
from policies.offers.constraints import Compiled
from policies.offers.table import Axis
from policies.planning.requirements import FOREVER, grants
from policies.policy import Default, Require
from policies.state.snapshot import Snapshot

_NONE = Default()
MOST_SENTENCES = 20
"""Sentences on one policy: more do not fit into a message."""


@dataclass(frozen=True, slots=True)
class Clips:
    snapshot: Snapshot
    reach: Reach
    offers: int
    """All offers of all platforms, as a bit set."""
    _required_on: dict[tuple[Compiled, Axis], int] = field(default_factory=dict)

    def sentences(self, compiled: Compiled, scope: Sequence[Compiled]) -> tuple[str, ...]:
        """Return sentences such as ``spec.default.gracePeriod 2h is clipped to 1h by
        ClusterGPUPolicy/guard``.

        ``scope``: the policies of the cluster; for a namespace's own policy, those of the namespace too.
        """
        if replace(compiled.policy.default, accelerator_taints=False, repair=()) == _NONE:
            return ()
        meeting = [c for c in scope if self.reach.together(compiled, c)]
        others = [c for c in meeting if c.mode == "Enforce" or c is compiled]
        allowing = [c for c in meeting if c.policy.namespace is None]
        found = (
            *self._offers(compiled, others),
            *_times(compiled, others),
            *_tolerations(compiled, others, allowing),
            *self._template(compiled, others, allowing),
            *_slice(compiled, others),
            *_priority(compiled, allowing),
        )
        return found[:MOST_SENTENCES]

    def _offers(self, compiled: Compiled, others: Sequence[Compiled]) -> Iterator[str]:
        default = [c for c in (*compiled.machine, compiled.capacity, compiled.capacity_long) if c is not None and c.narrows]
        for constraint in default:
            mine = constraint.sure
            gone, clipping = False, list[Compiled]()
            for other in others:
                inside = self._inside(other, constraint.axis)
                if mine & ~inside:
                    gone = gone or not mine & inside
                    clipping.append(other)
            if clipping:
                name = constraint.field.removesuffix(".capacity") if "longRuns" in constraint.field else constraint.field
                by = list_names((f"{c.id} ({_texts(c, constraint.axis)})" for c in clipping[:MOST_NAMED]), len(clipping))
                value = describe_value(constraint.field, value_at(compiled.policy, constraint.field))
                yield f"{name} {value} {'has no effect: it is outside the requirements of' if gone else 'is clipped by'} {by}"

    def _inside(self, other: Compiled, axis: Axis) -> int:
        found = self._required_on.get((other, axis))
        if found is None:
            found = self.offers
            for required in other.require:
                if required.axis == axis:
                    found &= required.rows
            self._required_on[other, axis] = found
        return found

    def _template(self, compiled: Compiled, others: Sequence[Compiled], allowing: Sequence[Compiled]) -> Iterator[str]:
        name = compiled.policy.default.node_template
        template = self.snapshot.templates.get(name) if name is not None else None
        if template is None:
            return
        if compiled.policy.namespace is not None and not any(name in c.policy.allow.node_templates for c in allowing):
            yield f"spec.default.nodeTemplate {name} has no effect: no ClusterGPUPolicy allows it here (allow.nodeTemplates)"
        taints = [TolerationPattern(key=t.key, value=t.value, effect=t.effect) for t in template.template.taints]
        if forbidders := [c for c in others if any(_forbids(c, taint) for taint in taints)]:
            yield f"spec.default.nodeTemplate {name} has no effect: its taint is forbidden by {_ids(forbidders)}"
        rows = template.rows
        outside = [c for c in others if rows and not rows & self._required(c)]
        if outside:
            yield f"spec.default.nodeTemplate {name} has no effect: its nodes do not meet the requirements of {_ids(outside)}"

    def _required(self, compiled: Compiled) -> int:
        return self._inside(compiled, "machine") & self._inside(compiled, "capacity") & self._inside(compiled, "sharing")


def _texts(compiled: Compiled, axis: Axis) -> str:
    return " and ".join(required.text for required in compiled.require if required.axis == axis)


_LIMITS: tuple[tuple[str, str, Callable[[Require], int | None], str], ...] = (
    ("spec.default.gracePeriod", "spec.require.gracePeriod.max", lambda r: r.grace_max, "is clipped to {} by {}"),
    ("spec.default.gracePeriod", "spec.require.gracePeriod.min", lambda r: r.grace_min, "is raised to {}, which is required by {}"),
    ("spec.default.protectFor", "spec.require.protection.max", lambda r: r.protection_max, "is clipped to {} by {}"),
    ("spec.default.maxRuntime", "spec.require.maxRuntime", lambda r: r.max_runtime, "is clipped to {} by {}"),
)
"""Rows of (path of a default, path of its bound, getter of the bound, what happens to the default)."""


def _times(compiled: Compiled, others: Sequence[Compiled]) -> Iterator[str]:
    for path, bound, of, how in _LIMITS:
        given = value_at(compiled.policy, path)
        limits = [(limit, c) for c in others if (limit := of(c.policy.require)) is not None] if given is not None else []
        if limits:
            seconds = FOREVER if given == "Always" else given
            tightest = min if field_at(bound).merge == "least" else max
            limit = tightest(limit for limit, _ in limits)
            if tightest(limit, seconds) != seconds:
                by = _ids([c for value, c in limits if value == limit])
                yield f"{path} {describe_value(path, given)} {how.format(describe_value(bound, limit), by)}"


def _tolerations(compiled: Compiled, others: Sequence[Compiled], allowing: Sequence[Compiled]) -> Iterator[str]:
    for pattern in compiled.policy.default.tolerate:
        unadded = f"spec.default.tolerate {pattern} is not added"
        granted = compiled.policy.namespace is None or any(grants(g, pattern) for c in allowing for g in c.policy.allow.tolerations)
        if not granted:
            yield f"{unadded}: no ClusterGPUPolicy allows it here (allow.tolerations)"
        elif forbidders := [c for c in others if _forbids(c, pattern)]:
            yield f"{unadded}: it is forbidden by {_ids(forbidders)}"


def _priority(compiled: Compiled, allowing: Sequence[Compiled]) -> Iterator[str]:
    name = compiled.policy.default.priority_class
    if name is not None and compiled.policy.namespace is not None and not any(name in c.policy.allow.priority_classes for c in allowing):
        yield f"spec.default.priorityClass {name} has no effect: no ClusterGPUPolicy allows it here (allow.priorityClasses)"


def _forbids(compiled: Compiled, pattern: TolerationPattern) -> bool:
    """Return whether a toleration matches a forbidden taint: without value or effect it matches every
    taint of its key."""
    return any(
        forbidden.key == pattern.key
        and (None in (forbidden.value, pattern.value) or forbidden.value == pattern.value)
        and (None in (forbidden.effect, pattern.effect) or forbidden.effect == pattern.effect)
        for forbidden in compiled.policy.require.forbid_tolerations
    )


def _slice(compiled: Compiled, others: Sequence[Compiled]) -> Iterator[str]:
    mig = compiled.policy.default.mig
    if mig is not None:
        whole = [c for c in others if c.policy.require.sharing and "MIG" not in c.policy.require.sharing]
        if whole:
            yield f"spec.default.{describe_field('spec.default.mig', mig)} has no effect: other sharing is required by {_ids(whole)}"


def _ids(policies: Sequence[Compiled]) -> str:
    return list_names((c.id for c in policies[:MOST_NAMED]), len(policies))
