"""Defaults outside what the policies of the same scope, and of the cluster, require or allow: what of them does not act, and by whom.

Only a requirement that is enforced clips, and a policy's own: an audited one is judged alone, on top of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from policies import duration
from policies.compiled import Compiled
from policies.findings.reach import Reach
from policies.findings.sets import Offers
from policies.findings.words import MOST_NAMED, long_time, named, slice_size, toleration
from policies.offers import Axis
from policies.policy import Default, TolerationPattern
from policies.snapshot import Snapshot
from policies.wishes import FOREVER, grants

_NONE = Default()
MOST_SAID = 20
"""sentences of one policy: more do not fit into a message"""


@dataclass(frozen=True, slots=True)
class Clips:
    snapshot: Snapshot
    reach: Reach
    offers: Offers
    _required_on: dict[tuple[Compiled, Axis], int] = field(default_factory=dict)

    def sentences(self, compiled: Compiled, scope: Sequence[Compiled]) -> tuple[str, ...]:
        """``spec.default.gracePeriod 2h is clipped to 1h by ClusterGPUPolicy/guard``. ``scope``: the policies of the cluster, for a
        namespace's own policy those too."""
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
        )
        return found[:MOST_SAID]

    def _offers(self, compiled: Compiled, others: Sequence[Compiled]) -> Iterator[str]:
        default = [c for c in (*compiled.machine, compiled.capacity, compiled.capacity_long) if c is not None and c.narrows]
        for constraint in default:
            mine = self.offers.joined(constraint.sure or constraint.rows)
            gone, clipping = False, list[Compiled]()
            for other in others:
                inside = self._inside(other, constraint.axis)
                if mine & ~inside:
                    gone = gone or not mine & inside
                    clipping.append(other)
            if clipping:
                name = constraint.field.removesuffix(".capacity") if "longRuns" in constraint.field else constraint.field
                by = named((f"{c.policy.id} ({_texts(c, constraint.axis)})" for c in clipping[:MOST_NAMED]), len(clipping))
                value = constraint.text.partition(" ")[2]
                yield f"{name} {value} {'does not act: it is outside what is required' if gone else 'is clipped'} by {by}"

    def _inside(self, other: Compiled, axis: Axis) -> int:
        found = self._required_on.get((other, axis))
        if found is None:
            found = self.offers.all
            for required in other.require:
                if required.axis == axis:
                    found &= self.offers.joined(required.rows)
            self._required_on[other, axis] = found
        return found

    def _template(self, compiled: Compiled, others: Sequence[Compiled], allowing: Sequence[Compiled]) -> Iterator[str]:
        name = compiled.policy.default.node_template
        template = self.snapshot.templates.get(name) if name is not None else None
        if template is None:
            return
        if compiled.policy.namespace is not None and not any(name in c.policy.allow.node_templates for c in allowing):
            yield f"spec.default.nodeTemplate {name} does not act: no ClusterGPUPolicy allows it here (allow.nodeTemplates)"
        taints = [TolerationPattern(key=t.key, value=t.value, effect=t.effect) for t in template.template.taints]
        if forbidders := [c for c in others if any(_forbids(c, taint) for taint in taints)]:
            yield f"spec.default.nodeTemplate {name} does not act: its taint is forbidden by {_ids(forbidders)}"
        rows = self.offers.joined(template.rows)
        outside = [c for c in others if rows and not rows & self._required(c)]
        if outside:
            yield f"spec.default.nodeTemplate {name} does not act: its nodes are outside what is required by {_ids(outside)}"

    def _required(self, compiled: Compiled) -> int:
        return self._inside(compiled, "machine") & self._inside(compiled, "capacity") & self._inside(compiled, "sharing")


def _texts(compiled: Compiled, axis: Axis) -> str:
    return " and ".join(required.text for required in compiled.require if required.axis == axis)


def _times(compiled: Compiled, others: Sequence[Compiled]) -> Iterator[str]:
    default = compiled.policy.default
    if default.grace is not None:
        yield from _time("gracePeriod", default.grace, default.grace, [(c.policy.require.grace_max, c) for c in others])
        yield from _raised(default.grace, others)
    if default.protect_for is not None:
        seconds = FOREVER if default.protect_for == "Always" else default.protect_for
        yield from _time("protectFor", default.protect_for, seconds, [(c.policy.require.protection_max, c) for c in others])


def _raised(grace: int, others: Sequence[Compiled]) -> Iterator[str]:
    floors = [(least, c) for c in others if (least := c.policy.require.grace_min) is not None and least > grace]
    if floors:
        most = max(least for least, _ in floors)
        by = _ids([c for least, c in floors if least == most])
        yield f"spec.default.gracePeriod {duration.text(grace)} is raised to {duration.text(most)}, which is required by {by}"


def _time(name: str, written: int | str, seconds: int, limits: Iterable[tuple[int | None, Compiled]]) -> Iterator[str]:
    tighter = [(most, c) for most, c in limits if most is not None and most < seconds]
    if tighter:
        least = min(most for most, _ in tighter)
        by = _ids([c for most, c in tighter if most == least])
        yield f"spec.default.{name} {long_time(written)} is clipped to {duration.text(least)} by {by}"


def _tolerations(compiled: Compiled, others: Sequence[Compiled], allowing: Sequence[Compiled]) -> Iterator[str]:
    for pattern in compiled.policy.default.tolerate:
        text = f"spec.default.tolerate {toleration(pattern)} is not added"
        granted = compiled.policy.namespace is None or any(grants(g, pattern) for c in allowing for g in c.policy.allow.tolerations)
        if not granted:
            yield f"{text}: no ClusterGPUPolicy allows it here (allow.tolerations)"
        elif forbidders := [c for c in others if _forbids(c, pattern)]:
            yield f"{text}: it is forbidden by {_ids(forbidders)}"


def _forbids(compiled: Compiled, pattern: TolerationPattern) -> bool:
    """Whether a toleration reaches a taint that is forbidden: one without value or effect reaches every one of its key."""
    return any(
        forbidden.key == pattern.key
        and (None in (forbidden.value, pattern.value) or forbidden.value == pattern.value)
        and (None in (forbidden.effect, pattern.effect) or forbidden.effect == pattern.effect)
        for forbidden in compiled.policy.require.forbid_tolerations
    )


def _slice(compiled: Compiled, others: Sequence[Compiled]) -> Iterator[str]:
    if compiled.policy.default.mig is not None:
        whole = [c for c in others if c.policy.require.sharing and "MIG" not in c.policy.require.sharing]
        if whole:
            yield f"spec.default.mig {slice_size(compiled.policy.default)} does not act: other sharing is required by {_ids(whole)}"


def _ids(policies: Sequence[Compiled]) -> str:
    return named((c.policy.id for c in policies[:MOST_NAMED]), len(policies))
