"""One plan, read out: a row for each field of ``require``, ``default`` and ``allow`` that policies give.

What the engine remarked (clipped, skipped, in conflict) stands with the field that it is about; what is about no field is handed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from policies import duration
from policies.author import OPT_OUT, is_long
from policies.compiled import Compiled, Constraint
from policies.offers import CAPACITIES
from policies.placement import listed
from policies.plan import Plan
from policies.policy import Bounds, Default, InNotIn, LongRuns, Require, TolerationPattern
from policies.verdict import Remark
from policies.wishes import FOREVER, Limit

Section = Literal["require", "default", "allow"]
NONE = "-"
"""the text of a field that policies give and that does not act"""
_MOST_MODELS = 8
"""models named in a line; `berth gpus` has them all"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One field in effect. Durations in ``value`` are seconds; None: given by a policy, and not acting."""

    section: Section
    field: str
    """``families``, ``gpusPerPod.max``"""
    value: Any
    text: str
    by: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """what it clipped, overrode, or why it does not act"""


class Remarks:
    """The plan's remarks, each told once: with its field, else at the end."""

    def __init__(self, remarks: Sequence[Remark]) -> None:
        self.left = list(remarks)

    def take(self, about: Callable[[Remark], bool]) -> tuple[str, ...]:
        """The sentences of those, which are then gone."""
        taken = [remark for remark in self.left if about(remark)]
        self.left = [remark for remark in self.left if remark not in taken]
        return tuple(map(str, taken))


def mentioning(*texts: str) -> Callable[[Remark], bool]:
    """Whether a remark holds one of these."""
    return lambda remark: any(text in remark.text for text in texts)


# --- require -----------------------------------------------------------------------------------------------------------


def require_rows(plan: Plan, remarks: Remarks) -> Iterator[Row]:
    """In the order of policies; what they leave together last."""
    for constraint in plan.constraints:
        if constraint.field.startswith("spec.require.longRuns"):
            continue  # told with its length below
        said = remarks.take(mentioning(constraint.text))
        yield Row(
            section="require",
            field=constraint.field.removeprefix("spec.require."),
            value=written(plan, constraint),
            text=words(constraint),
            by=constraint.by,
            notes=(*_narrower(plan, constraint), *said),
        )
    for compiled in plan.policies:
        if compiled.policy.require.long_runs is not None:
            yield long_row("require", plan, compiled, compiled.policy.require.long_runs)
    if plan.constraints:
        models = models_left(plan, "required")
        yield Row(section="require", field="models left", value=models, text=_models_text(models), by=())
    yield from _limits(plan, remarks)


def words(constraint: Constraint) -> str:
    """``in [hopper]`` of ``families in [hopper]``."""
    return constraint.text.partition(" ")[2]


def written(plan: Plan, constraint: Constraint) -> Any:
    """The field as its policy writes it: ``{"in": ["hopper"]}``, ``{"min": 40}``, ``["spot"]``."""
    policy = next(c.policy for c in plan.policies if c.policy.id in constraint.by)
    part, _, name = constraint.field.removeprefix("spec.").partition(".")
    parts: dict[str, Require | Default] = {"require": policy.require, "default": policy.default}
    machine = parts[part].machine
    lists = {"families": machine.families, "models": machine.models, "instanceFamilies": machine.instance_families}
    if name in lists:
        wanted = lists[name] or InNotIn()
        return {key: list(names) for key, names in (("in", wanted.in_), ("notIn", wanted.not_in)) if names}
    if name == "gpuMemory":
        bounds = machine.gpu_memory or Bounds()
        return {key: value for key, value in (("min", bounds.min), ("max", bounds.max)) if value is not None}
    return list(policy.require.sharing if name == "sharing" else parts[part].capacity)


def _narrower(plan: Plan, constraint: Constraint) -> Iterator[str]:
    for other in plan.constraints:
        within = all(rows & ~constraint.rows[name] == 0 for name, rows in other.rows.items())
        if other.axis == constraint.axis and within and other.rows != constraint.rows:
            yield f"adds nothing to {other.by[0]}: {other.text}"


def long_row(section: Section, plan: Plan, compiled: Compiled, runs: LongRuns) -> Row:
    """``longRuns`` of one policy, and whether this pod's run is long."""
    acts = is_long(plan.author.seconds, runs)
    unknown = "long" if runs.unknown_is_long else "short"
    return Row(
        section=section,
        field="longRuns",
        value={"over": runs.over, "capacity": list(runs.capacity), "unknownIsLong": runs.unknown_is_long, "acts": acts},
        text=f"over {duration.text(runs.over)}: capacity [{', '.join(runs.capacity)}]; unknown is {unknown}",
        by=(compiled.policy.id,),
        notes=() if acts else ("not for this pod, whose run is not long",),
    )


def models_left(plan: Plan, of: Literal["required", "inside"]) -> list[str]:
    """GPU models of the vendors asked for that are left, by name; ``others``: what the catalog does not know yet."""
    found: set[str] = set()
    for name, table in plan.snapshot.tables.items():
        left = plan.required[name] if of == "required" else plan.inside[name]
        for number, offer in enumerate(table.offers):
            if left >> number & 1 and offer.host.vendor in plan.vendors:
                found.add("others" if offer.host.gpu is None else offer.host.gpu.model)
    return [*sorted(found - {"others"}), *(["others"] if "others" in found else [])]


def capacities_left(plan: Plan) -> list[str]:
    """Of R, for the vendors asked for."""
    tables = plan.snapshot.tables
    return [c for c in CAPACITIES if any(plan.inside[name] & table.by_capacity.get(c, 0) for name, table in tables.items())]


def _models_text(models: Sequence[str]) -> str:
    return listed(models, _MOST_MODELS) if models else "no GPU that is known here"


def _limits(plan: Plan, remarks: Remarks) -> Iterator[Row]:
    wishes = plan.wishes
    yield from _limit(plan, "gpusPerPod.max", wishes.gpus_max, _most_gpus)
    if wishes.one_of is not None:
        yield Row(
            section="require",
            field="gpusPerPod.oneOf",
            value=list(wishes.one_of),
            text=f"[{', '.join(map(str, wishes.one_of))}]" if wishes.one_of else "nothing: the policies contradict each other",
            by=wishes.one_of_by,
            notes=tuple(_wider_counts(plan, wishes.one_of)),
        )
    for kind, who in wishes.equal.items():
        yield Row(section="require", field="requestsEqualLimits", value=kind, text=kind, by=who)
    if wishes.grace_min is not None:
        said = (*_whose(plan), *remarks.take(lambda remark: remark.rule == "checkpoint_grace"))
        yield from _limit(plan, "gracePeriod.min", wishes.grace_min, lambda c: c.policy.require.grace_min, duration.text, said, "longer")
    yield from _limit(plan, "gracePeriod.max", wishes.grace_max, lambda c: c.policy.require.grace_max, duration.text)
    yield from _limit(plan, "protection.max", wishes.protect_max, lambda c: c.policy.require.protection_max, duration.text)
    for pattern, policy in wishes.forbid:
        yield Row(section="require", field="tolerations.forbid", value=pattern_value(pattern), text=taint_text(pattern), by=(policy,))


def _whose(plan: Plan) -> Iterator[str]:
    """Whose pods a floor of grace is not for."""
    if plan.actor.floor == "no":
        yield f"not for {' and '.join(plan.actor.names)}"
    elif plan.actor.floor == "opt-out":
        yield f"not for {' and '.join(plan.actor.names)} with the annotation {OPT_OUT}: grace"


def _most_gpus(compiled: Compiled) -> int | None:
    limit = compiled.policy.require.gpus_per_pod
    return None if limit is None else limit.max


def _limit(
    plan: Plan,
    field: str,
    limit: Limit | None,
    of: Callable[[Compiled], int | None],
    text: Callable[[int], str] = str,
    said: Sequence[str] = (),
    how: str = "tighter",
) -> Iterator[Row]:
    if limit is not None:
        others = [(c.policy.id, value) for c in plan.policies if (value := of(c)) is not None and c.policy.id not in limit.policies]
        notes = (*(f"{how} than {text(value)} of {who}" for who, value in others), *said)
        yield Row(section="require", field=field, value=limit.value, text=text(limit.value), by=limit.policies, notes=notes)


def _wider_counts(plan: Plan, counts: Sequence[int]) -> Iterator[str]:
    for compiled in plan.policies:
        limit = compiled.policy.require.gpus_per_pod
        if limit is not None and limit.one_of and set(limit.one_of) != set(counts):
            yield f"tighter than [{', '.join(map(str, limit.one_of))}] of {compiled.policy.id}"


# --- allow -------------------------------------------------------------------------------------------------------------


def allow_rows(plan: Plan) -> Iterator[Row]:
    """What the cluster's policies let the namespace's own and authors bring in."""
    for name in sorted(plan.wishes.allowed_templates):
        who = tuple(c.policy.id for c in plan.policies if name in c.policy.allow.node_templates)
        yield Row(section="allow", field="nodeTemplates", value=name, text=name, by=who)
    for pattern in dict.fromkeys(plan.wishes.granted):
        who = tuple(c.policy.id for c in plan.policies if pattern in c.policy.allow.tolerations)
        yield Row(section="allow", field="tolerations", value=pattern_value(pattern), text=taint_text(pattern), by=who)


# --- in words ----------------------------------------------------------------------------------------------------------


def taint_text(pattern: TolerationPattern) -> str:
    """``team=research:NoSchedule``, as ``kubectl taint`` writes it."""
    value = f"={pattern.value}" if pattern.value is not None else ""
    return f"{pattern.key}{value}" + (f":{pattern.effect}" if pattern.effect else "")


def pattern_value(pattern: TolerationPattern) -> dict[str, str]:
    """As a policy writes it."""
    given = {"key": pattern.key, "value": pattern.value, "effect": pattern.effect}
    return {name: value for name, value in given.items() if value is not None}


def protection_text(seconds: int) -> str:
    return "Always" if seconds >= FOREVER else duration.text(seconds)
