"""The defaults of one plan as rows: the values chosen and written, what each overrode, and why a default does
not apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from analysis.effective.effective_rows import (
    NONE,
    EffectiveRow,
    Remarks,
    capacities_left,
    constraint_row,
    given_values,
    models_left,
    on,
    rows,
    show_row,
)
from kube.taints import TolerationPattern, covers
from policies.objects import wording
from policies.planning.feasibility import list_bracketed
from policies.planning.plan import Plan
from policies.planning.requirements import FOREVER
from policies.pods.annotations import is_long
from policies.rules.tolerations import toleration_of
from policies.verdict import Edit, Remark

_DEFAULT = "spec.default."
_PLANNED = (
    *("acceleratorTaints", "nodeTemplate", "families", "models", "instanceFamilies", "gpuMemory", "capacity", "longRuns", "mig"),
    *("gracePeriod", "protectFor", "tolerate"),
)
"""the fields whose rows show what was planned and written; rows of others show what policies give"""
_Settings = Mapping[str, str]
"""policy -> its value for a field as text; only policies that give one"""


def default_rows(plan: Plan, edits: Sequence[Edit], remarks: Remarks) -> Iterator[EffectiveRow]:
    """Yield the rows in the order in which the axes are filled, then those that do not concern placement."""
    yield from _taints(plan, remarks)
    yield from _template(plan, remarks)
    yield from _mig(plan, remarks)
    yield from _machine(plan, remarks)
    yield from _capacity(plan, remarks)
    yield from _spot(plan, edits)
    yield from _grace(plan, edits, remarks)
    yield from _protect(plan, edits, remarks)
    yield from _tolerate(plan, edits, remarks)
    for path in wording.paths("spec.default"):
        if wording.label(path) not in _PLANNED:
            yield from rows(plan, path)


def _row(field: str, value: Any, text: str, by: tuple[str, ...] = (), notes: Sequence[str] = ()) -> EffectiveRow:
    return show_row(_DEFAULT + field, value, text, by, notes)


def _settings(plan: Plan, field: str) -> _Settings:
    return {who: wording.describe_value(_DEFAULT + field, value) for who, value in given_values(plan, _DEFAULT + field)}


def _others(how: str, settings: _Settings, acting: Sequence[str]) -> list[str]:
    return [f"{how} {text} from {who}" for who, text in settings.items() if who not in acting]


def _idle(field: str, settings: _Settings, notes: Sequence[str]) -> Iterator[EffectiveRow]:
    """Yield the row of a field that is given but does not apply, or nothing if no policy gives it."""
    if settings:
        yield _row(field, None, NONE, (), notes or [f"{text} from {who} does not apply to this pod" for who, text in settings.items()])


# --- placement ----------------------------------------------------------------------------------------------


def _template(plan: Plan, remarks: Remarks) -> Iterator[EffectiveRow]:
    settings = _settings(plan, "nodeTemplate")
    notes = remarks.notes(on("spec.default.nodeTemplate"))
    if plan.template is None:
        yield from _idle("nodeTemplate", settings, notes)
        return
    name = plan.template.template.name
    yield _row("nodeTemplate", name, name, plan.template_by, (*_others("overrides", settings, plan.template_by), *notes))


def _mig(plan: Plan, remarks: Remarks) -> Iterator[EffectiveRow]:
    settings = _settings(plan, "mig")
    conflicts = on("spec.default.mig")
    notes = remarks.notes(lambda remark: remark.rule == "mig_resources" or conflicts(remark))
    if plan.slice is None:
        yield from _idle("mig", settings, notes)
        return
    chosen = plan.slice
    text = f"{chosen.profile} ({chosen.resource})"
    value = {"profile": chosen.profile, "resource": chosen.resource}
    yield _row("mig", value, text, chosen.policies, (*_others("overrides", settings, chosen.policies), *notes))


def _machine(plan: Plan, remarks: Remarks) -> Iterator[EffectiveRow]:
    settings = {c.id: " and ".join(one.text for one in c.machine) for c in plan.policies if c.machine}
    taken = remarks.take(on("spec.default.machine", *(c.field for compiled in plan.policies for c in compiled.machine)))
    chosen = [c for c in plan.chosen if c.axis == "machine"]
    if not chosen:
        beside = [f"{text} from {who} applies to whole GPUs; this pod gets a MIG slice" for who, text in settings.items()]
        yield from _idle("machine", settings, list(map(str, taken)) or (beside if plan.slice is not None else ()))
    for constraint in chosen:
        here = [str(remark) for remark in taken if on(constraint.field)(remark)]
        left = [f"remaining: {list_bracketed(models_left(plan, plan.inside), 8)}"] if here else []
        overridden = _others("overrides", settings, constraint.by) if constraint is chosen[0] else ()
        yield constraint_row(plan, constraint, (*overridden, *here, *left))


def _capacity(plan: Plan, remarks: Remarks) -> Iterator[EffectiveRow]:
    long = [who for who, runs in given_values(plan, "spec.default.longRuns") if is_long(plan.author.seconds, runs)]
    by_length = [(c.id, "longRuns.capacity" if c.id in long else "capacity") for c in plan.policies]
    texts = {field: _settings(plan, field) for field in ("longRuns.capacity", "capacity")}
    settings = {who: texts[field][who] + ("" if field == "capacity" else " (longRuns)") for who, field in by_length if who in texts[field]}
    notes = remarks.notes(on("spec.default.capacity", "spec.default.longRuns.capacity"))
    chosen = [c for c in plan.chosen if c.axis == "capacity"]
    if not chosen:
        yield from _idle("capacity", settings, notes)
    for constraint in chosen:
        from_long = ["from longRuns, which takes precedence over capacity"] if constraint.field.startswith("spec.default.longRuns") else []
        left = [f"remaining: [{', '.join(capacities_left(plan))}]"] if notes else []
        all_notes = (*from_long, *_others("overrides", settings, constraint.by), *notes, *left)
        text = constraint_row(plan, constraint).text
        yield _row("capacity", capacities_left(plan), text, constraint.by, all_notes)
    yield from rows(plan, "spec.default.longRuns")


def _spot(plan: Plan, edits: Sequence[Edit]) -> Iterator[EffectiveRow]:
    """Yield a row for the spot tolerations that follow if a capacity was named and the rest includes spot."""
    keys = {entry.taint.key for entry in plan.snapshot.catalog.spot_taints}
    added = [e.value for e in edits if e.rule == "tolerations" and e.policies == plan.spot and e.value["key"] in keys]
    if added:
        yield _row("(spot taints)", added, f"Tolerate {', '.join(sorted({one['key'] for one in added}))}", plan.spot)


# --- the rest -----------------------------------------------------------------------------------------------


def _grace(plan: Plan, edits: Sequence[Edit], remarks: Remarks) -> Iterator[EffectiveRow]:
    settings = _settings(plan, "gracePeriod")
    given, floor = plan.settings.grace, plan.settings.grace_min
    if given is None:
        yield from _idle("gracePeriod", settings, _not_calm(plan, settings))
        return
    written = [edit for edit in edits if edit.rule == "checkpoint_grace" and edit.path[0] == "spec" and len(edit.path) == 2]
    if written and floor is not None and written[0].value == floor.value and written[0].policies == floor.policies != given.policies:
        text = wording.describe_value("spec.require.gracePeriod.min", floor.value)
        yield from _idle("gracePeriod", settings, [f"{text} is required by {' and '.join(floor.policies)}"])
        return
    notes = remarks.notes(lambda remark: remark.rule == "checkpoint_grace")
    seconds = written[0].value if written else plan.pod.grace or given.value
    text = wording.describe_value("spec.default.gracePeriod", seconds)
    yield _row("gracePeriod", seconds, text, given.policies, (*_others("longer than", settings, given.policies), *notes))


def _not_calm(plan: Plan, settings: _Settings) -> list[str]:
    return [f"does not apply to {' and '.join(plan.actor.names)} unless {' or '.join(settings)} names the workload"] if settings else []


def _protect(plan: Plan, edits: Sequence[Edit], remarks: Remarks) -> Iterator[EffectiveRow]:
    settings = _settings(plan, "protectFor")
    notes = remarks.notes(lambda remark: remark.rule == "disruption")
    given, limit = plan.settings.protect, plan.settings.protect_max
    if given is None:
        yield from _idle("protectFor", settings, notes or _not_calm(plan, settings))
        return
    seconds = given.value if limit is None else min(given.value, limit.value)
    clipped = []
    if limit is not None and seconds < given.value:
        clipped = [f"clipped from {_protection(given.value)} by protection.max of {', '.join(limit.policies)}"]
    written = {str(edit.path[-1]): edit.value for edit in edits if edit.rule == "disruption"}
    writes = [f"writes {', '.join(f'{key}={value}' for key, value in written.items())}"] if written else []
    all_notes = (*_others("longer than", settings, given.policies), *clipped, *writes, *notes)
    yield _row("protectFor", _protection(seconds), _protection(seconds), given.policies, all_notes)


def _protection(seconds: int) -> str:
    return wording.describe_value("spec.default.protectFor", "Always" if seconds >= FOREVER else seconds)


def _taints(plan: Plan, remarks: Remarks) -> Iterator[EffectiveRow]:
    if plan.settings.taints:
        own = [_ungranted(pattern, who) for pattern, who in plan.settings.ungranted]
        notes = remarks.notes(lambda remark: remark.code == UNGRANTED and not any(one(remark) for one in own))
        yield _row("acceleratorTaints", "Tolerate", "Tolerate", plan.settings.taints, notes)


def _tolerate(plan: Plan, edits: Sequence[Edit], remarks: Remarks) -> Iterator[EffectiveRow]:
    added = [edit.value for edit in edits if edit.rule == "tolerations"]
    for pattern, who in plan.settings.tolerate:
        acts = any(covers(one, toleration_of(pattern)) for one in added)
        notes = () if acts else remarks.notes(_not_added(pattern))
        value = wording.form("spec.default.tolerate[]", pattern)
        yield _row("tolerate", value if acts else None, str(pattern) if acts else NONE, who, notes)
    for pattern, policy in plan.settings.ungranted:
        why = remarks.notes(_ungranted(pattern, policy))
        yield _row("tolerate", None, NONE, (), why or [f"{pattern} from {policy} is not allowed"])


UNGRANTED = "BERTH-218"


def _ungranted(pattern: TolerationPattern, policy: str) -> Callable[[Remark], bool]:
    taint = str(pattern)
    return lambda remark: remark.code == UNGRANTED and remark.policies == (policy,) and remark.found.value("taint") == taint


def _not_added(pattern: TolerationPattern) -> Callable[[Remark], bool]:
    """Return a test for remarks that a toleration is forbidden, by another policy or to everybody."""
    return lambda remark: remark.rule == "tolerations" and remark.found.value("key") == pattern.key
