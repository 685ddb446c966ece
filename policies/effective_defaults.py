"""The defaults of one plan, read out: what was chosen, what the rules write, what each overrode and why one does not act."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from policies import duration
from policies.author import is_long
from policies.compiled import Compiled
from policies.effective_rows import (
    NONE,
    Remarks,
    Row,
    capacities_left,
    long_row,
    mentioning,
    models_left,
    pattern_value,
    protection_text,
    taint_text,
    words,
    written,
)
from policies.placement import listed
from policies.plan import Plan
from policies.policy import MigDefault
from policies.rules.tolerations import covers, toleration_of
from policies.verdict import Edit
from policies.wishes import FOREVER

_Wish = Callable[[Compiled], str | None]
"""what one policy gives for a field, in words; None: nothing"""


def default_rows(plan: Plan, edits: Sequence[Edit], remarks: Remarks) -> Iterator[Row]:
    """In the order in which the axes are filled, then what is no placement."""
    yield from _taints(plan, remarks)
    yield from _template(plan, remarks)
    yield from _mig(plan, remarks)
    yield from _machine(plan, remarks)
    yield from _capacity(plan, remarks)
    yield from _spot(plan, edits)
    yield from _grace(plan, edits, remarks)
    yield from _protect(plan, edits, remarks)
    yield from _tolerate(plan, edits, remarks)
    if plan.wishes.repair:
        yield _row("repair", ["accelerators"], "[accelerators]", plan.wishes.repair)


def _row(field: str, value: Any, text: str, by: tuple[str, ...] = (), notes: Sequence[str] = ()) -> Row:
    return Row(section="default", field=field, value=value, text=text, by=by, notes=tuple(notes))


def _overridden(plan: Plan, wish: _Wish, acting: Sequence[str]) -> Iterator[str]:
    for compiled in plan.policies:
        given = wish(compiled)
        if given is not None and compiled.policy.id not in acting:
            yield f"overrides {given} of {compiled.policy.id}"


def _idle(plan: Plan, field: str, wish: _Wish, notes: Sequence[str]) -> Iterator[Row]:
    """The row of a field that is given and does not act: nothing where no policy gives it."""
    given = [(c.policy.id, text) for c in plan.policies if (text := wish(c)) is not None]
    if given:
        yield _row(field, None, NONE, (), notes or [f"{text} of {who} does not act on this pod" for who, text in given])


# --- placement ---------------------------------------------------------------------------------------------------------


def _template(plan: Plan, remarks: Remarks) -> Iterator[Row]:
    def wish(compiled: Compiled) -> str | None:
        return compiled.policy.default.node_template

    notes = remarks.take(mentioning("default nodeTemplate ", "differ on nodeTemplate:"))
    if plan.template is None:
        yield from _idle(plan, "nodeTemplate", wish, notes)
        return
    name = plan.template.template.name
    yield _row("nodeTemplate", name, name, plan.template_by, (*_overridden(plan, wish, plan.template_by), *notes))


def _mig(plan: Plan, remarks: Remarks) -> Iterator[Row]:
    notes = remarks.take(lambda remark: remark.rule == "mig_resources" or "differ on mig:" in remark.text)
    if plan.slice is None:
        yield from _idle(plan, "mig", _slice_wish, notes)
        return
    chosen = plan.slice
    text = f"{chosen.profile} ({chosen.resource})"
    value = {"profile": chosen.profile, "resource": chosen.resource}
    yield _row("mig", value, text, chosen.policies, (*_overridden(plan, _slice_wish, chosen.policies), *notes))


def _slice_wish(compiled: Compiled) -> str | None:
    wish = compiled.policy.default.mig
    return None if wish is None else _size(wish)


def _size(wish: MigDefault) -> str:
    return f"slice {wish.slice_gb}gb" if wish.slice_gb is not None else f"usableMemory {wish.usable_mib}Mi"


def _machine(plan: Plan, remarks: Remarks) -> Iterator[Row]:
    def wish(compiled: Compiled) -> str | None:
        return " and ".join(c.text for c in compiled.machine) or None

    texts = {f"default {c.text}" for compiled in plan.policies for c in compiled.machine}
    notes = remarks.take(mentioning("differ on machine:", *texts))
    chosen = [c for c in plan.chosen if c.axis == "machine"]
    if not chosen:
        yield from _idle(plan, "machine", wish, notes or (list(_beside_slice(plan, wish)) if plan.slice is not None else []))
    for constraint in chosen:
        here = [note for note in notes if constraint.text in note]
        left = [f"leaves {listed(models_left(plan, 'inside'), 8)}"] if here else []
        overridden = _overridden(plan, wish, constraint.by) if constraint is chosen[0] else ()
        field = constraint.field.removeprefix("spec.default.")
        yield _row(field, written(plan, constraint), words(constraint), constraint.by, (*overridden, *here, *left))


def _beside_slice(plan: Plan, wish: _Wish) -> Iterator[str]:
    for compiled in plan.policies:
        if (text := wish(compiled)) is not None:
            yield f"{text} of {compiled.policy.id} is for whole GPUs; here a slice is taken"


def _capacity(plan: Plan, remarks: Remarks) -> Iterator[Row]:
    def wish(compiled: Compiled) -> str | None:
        default = compiled.policy.default
        if default.long_runs is not None and is_long(plan.author.seconds, default.long_runs):
            return f"[{', '.join(default.long_runs.capacity)}] (longRuns)"
        return f"[{', '.join(default.capacity)}]" if default.capacity else None

    notes = remarks.take(mentioning("differ on capacity:", "default capacity "))
    chosen = [c for c in plan.chosen if c.axis == "capacity"]
    if not chosen:
        yield from _idle(plan, "capacity", wish, notes)
    for constraint in chosen:
        from_long = ["by longRuns, which beats capacity"] if constraint.field.startswith("spec.default.longRuns") else []
        left = [f"leaves [{', '.join(capacities_left(plan))}]"] if notes else []
        all_notes = (*from_long, *_overridden(plan, wish, constraint.by), *notes, *left)
        yield _row("capacity", capacities_left(plan), words(constraint), constraint.by, all_notes)
    for compiled in plan.policies:
        if compiled.policy.default.long_runs is not None:
            yield long_row("default", plan, compiled, compiled.policy.default.long_runs)


def _spot(plan: Plan, edits: Sequence[Edit]) -> Iterator[Row]:
    """What follows from a capacity that was named, where what is left holds spot."""
    keys = {entry.taint.key for entry in plan.snapshot.catalog.spot_taints}
    added = [e.value for e in edits if e.rule == "tolerations" and e.policies == plan.spot and e.value["key"] in keys]
    if added:
        yield _row("(spot taints)", added, f"Tolerate {', '.join(sorted({one['key'] for one in added}))}", plan.spot)


# --- the rest ----------------------------------------------------------------------------------------------------------


def _grace(plan: Plan, edits: Sequence[Edit], remarks: Remarks) -> Iterator[Row]:
    def wish(compiled: Compiled) -> str | None:
        seconds = compiled.policy.default.grace
        return None if seconds is None else duration.text(seconds)

    given, floor = plan.wishes.grace, plan.wishes.grace_min
    if given is None:
        yield from _idle(plan, "gracePeriod", wish, _not_calm(plan, wish))
        return
    written = [edit for edit in edits if edit.rule == "checkpoint_grace" and edit.path[0] == "spec" and len(edit.path) == 2]
    if written and floor is not None and written[0].value == floor.value and written[0].policies == floor.policies != given.policies:
        yield from _idle(plan, "gracePeriod", wish, [f"{duration.text(floor.value)} is required by {' and '.join(floor.policies)}"])
        return
    notes = remarks.take(lambda remark: remark.rule == "checkpoint_grace")
    seconds = written[0].value if written else plan.pod.grace or given.value
    shorter = [f"longer than {text} of {who}" for who, text in _others(plan, wish, given.policies)]
    yield _row("gracePeriod", seconds, duration.text(seconds), given.policies, (*shorter, *notes))


def _others(plan: Plan, wish: _Wish, acting: Sequence[str]) -> Iterator[tuple[str, str]]:
    for compiled in plan.policies:
        text = wish(compiled)
        if text is not None and compiled.policy.id not in acting:
            yield compiled.policy.id, text


def _not_calm(plan: Plan, wish: _Wish) -> list[str]:
    who = [c.policy.id for c in plan.policies if wish(c) is not None]
    return [f"not for {' and '.join(plan.actor.names)}, unless {' or '.join(who)} names the workload"] if who else []


def _protect(plan: Plan, edits: Sequence[Edit], remarks: Remarks) -> Iterator[Row]:
    def wish(compiled: Compiled) -> str | None:
        wanted = compiled.policy.default.protect_for
        return None if wanted is None else protection_text(FOREVER if wanted == "Always" else wanted)

    notes = remarks.take(lambda remark: remark.rule == "disruption")
    given, limit = plan.wishes.protect, plan.wishes.protect_max
    if given is None:
        yield from _idle(plan, "protectFor", wish, notes or _not_calm(plan, wish))
        return
    seconds = given.value if limit is None else min(given.value, limit.value)
    clipped = []
    if limit is not None and seconds < given.value:
        clipped = [f"clipped from {protection_text(given.value)} by protection.max of {', '.join(limit.policies)}"]
    shorter = [f"longer than {text} of {who}" for who, text in _others(plan, wish, given.policies)]
    written = {str(edit.path[-1]): edit.value for edit in edits if edit.rule == "disruption"}
    writes = [f"writes {', '.join(f'{key}={value}' for key, value in written.items())}"] if written else []
    yield _row("protectFor", protection_text(seconds), protection_text(seconds), given.policies, (*shorter, *clipped, *writes, *notes))


def _taints(plan: Plan, remarks: Remarks) -> Iterator[Row]:
    if plan.wishes.taints:
        own = {f"toleration {taint_text(pattern)} of {who} " for pattern, who in plan.wishes.ungranted}
        notes = remarks.take(lambda remark: remark.code == "BERTH-218" and not any(text in remark.text for text in own))
        yield _row("acceleratorTaints", "Tolerate", "Tolerate", plan.wishes.taints, notes)


def _tolerate(plan: Plan, edits: Sequence[Edit], remarks: Remarks) -> Iterator[Row]:
    added = [edit.value for edit in edits if edit.rule == "tolerations"]
    for pattern, who in plan.wishes.tolerate:
        acts = any(covers(one, toleration_of(pattern)) for one in added)
        notes = () if acts else remarks.take(mentioning(f"toleration {pattern.key} is not added"))
        yield _row("tolerate", pattern_value(pattern) if acts else None, taint_text(pattern) if acts else NONE, who, notes)
    for pattern, policy in plan.wishes.ungranted:
        said = remarks.take(mentioning(f"toleration {taint_text(pattern)} of {policy} "))
        yield _row("tolerate", None, NONE, (), said or [f"{taint_text(pattern)} of {policy} is not granted"])
