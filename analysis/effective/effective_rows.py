"""List one plan: a row for each field of ``require``, ``default`` and ``allow`` that policies set.

The fields, the way in which several policies' values of one are merged, and their texts come from the
definition (``policies.objects.wording``). The engine's remarks (clipped, skipped, conflicting) are notes of
the row that they are about; remarks about no field are left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from policies.objects import wording
from policies.offers.constraints import Constraint, fields
from policies.offers.table import CAPACITIES
from policies.planning.feasibility import list_bracketed
from policies.planning.plan import Plan
from policies.pods.annotations import OPT_OUT, is_long
from policies.policy import LongRuns
from policies.verdict import Remark

Section = Literal["require", "default", "allow"]
NONE = "-"
"""The text for a field that policies set and that has no effect."""
_FLOOR = "spec.require.gracePeriod.min"
_MOST_MODELS = 8
"""The most models in a line; `berth gpus` lists all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveRow:
    """One field in effect. ``value``: in seconds for durations; None if a policy sets the field without
    effect."""

    section: Section
    field: str
    """The path below the section: ``families``, ``gpusPerPod.max``."""
    value: Any
    text: str
    by: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks: what it clips or overrides, or why it has no effect."""


class Remarks:
    """The plan's remarks, each listed once: with its field, or at the end."""

    def __init__(self, remarks: Sequence[Remark]) -> None:
        self.left = list(remarks)

    def take(self, matches: Callable[[Remark], bool]) -> tuple[Remark, ...]:
        """Remove and return the remarks for which ``matches`` is true."""
        taken = tuple(remark for remark in self.left if matches(remark))
        self.left = [remark for remark in self.left if remark not in taken]
        return taken

    def notes(self, matches: Callable[[Remark], bool]) -> tuple[str, ...]:
        """Remove these remarks and return their sentences."""
        return tuple(map(str, self.take(matches)))


def _of(constraint: Constraint) -> Callable[[Remark], bool]:
    own = fields([constraint])
    return lambda remark: any(one in own for one in remark.fields)


def on(*names: str) -> Callable[[Remark], bool]:
    """Return a predicate: whether a remark is about one of these fields of any policy, such as
    ``spec.default.nodeTemplate``."""
    return lambda remark: any(name in names for _, name in remark.fields)


# --- one field ----------------------------------------------------------------------------------------------


def row(path: str, value: Any, by: tuple[str, ...], notes: Sequence[str] = ()) -> EffectiveRow:
    """Return the row of a field with the value that policies set."""
    return show_row(path, wording.form(path, value), wording.describe_value(path, value), by, notes)


def show_row(path: str, value: Any, text: str, by: tuple[str, ...], notes: Sequence[str] = ()) -> EffectiveRow:
    """Return the row of a field whose value is not as policies wrote it, such as the slice that was
    chosen."""
    section, _, field = path.removeprefix("spec.").partition(".")
    return EffectiveRow(section=cast(Section, section), field=field, value=value, text=text, by=by, notes=tuple(notes))


def given_values(plan: Plan, path: str) -> list[tuple[str, Any]]:
    """Return (policy id, value) of each policy that sets this field."""
    return [(c.id, value) for c in plan.policies if (value := wording.value_at(c.policy, path)) is not None]


def rows(plan: Plan, path: str, notes: Sequence[str] = ()) -> Iterator[EffectiveRow]:
    """Yield the rows of a field: the policies' values, merged as the definition says. Notes list the values
    that the merged one overrides."""
    values = given_values(plan, path)
    match wording.field_at(path).merge if values else "each":
        case "each":
            yield from (_own(plan, path, who, value) for who, value in values)
        case "union":
            yield from _union(path, values)
        case "common":
            common = sorted(set[int].intersection(*(set(value) for _, value in values)))
            wider = [f"tighter than {wording.describe_value(path, value)} from {who}" for who, value in values if set(value) != set(common)]
            text = wording.describe_value(path, common) if common else "nothing: the policies conflict"
            yield show_row(path, common, text, tuple(who for who, _ in values), wider)
        case "least" | "most" as merge:
            merged = (min if merge == "least" else max)(value for _, value in values)
            how = "tighter" if merge == "least" else "longer"
            beaten = [f"{how} than {wording.describe_value(path, value)} from {who}" for who, value in values if value != merged]
            yield row(path, merged, tuple(sorted(who for who, value in values if value == merged)), (*beaten, *notes))


def _own(plan: Plan, path: str, who: str, value: Any) -> EffectiveRow:
    """Return the row of one policy's value, which is not merged. For ``longRuns`` it shows whether this pod's
    run is long."""
    if not isinstance(value, LongRuns):
        return row(path, value, (who,))
    acts = is_long(plan.author.seconds, value)
    notes = () if acts else ("does not apply: the pod's run is not long",)
    return show_row(path, wording.form(path, value) | {"acts": acts}, wording.describe_value(path, value), (who,), notes)


def _union(path: str, values: Sequence[tuple[str, Any]]) -> Iterator[EffectiveRow]:
    """Yield a row for each item: names are sorted, tolerations are in the order of the policies."""
    items = dict.fromkeys(item for _, value in values for item in value)
    for item in sorted(items, key=lambda item: item if isinstance(item, str) else ""):
        by = tuple(who for who, value in values if item in value)
        yield show_row(path, wording.form(f"{path}[]", item), wording.describe_value(f"{path}[]", item), by)


# --- require and allow --------------------------------------------------------------------------------------


def require_rows(plan: Plan, remarks: Remarks) -> Iterator[EffectiveRow]:
    """Yield the constraints on placement in the order of the policies, with the models that are left; then
    the other fields in the order of the reference."""
    for constraint in plan.constraints:
        if constraint.field.startswith("spec.require.longRuns"):
            continue  # listed with its length below
        notes = remarks.notes(_of(constraint))
        yield constraint_row(plan, constraint, (*_narrower(plan, constraint), *notes))
    placement = {constraint.field for compiled in plan.policies for constraint in compiled.require}
    others = [path for path in wording.paths("spec.require") if path not in placement]
    for path in (path for path in others if wording.field_at(path).merge == "each"):
        yield from rows(plan, path)
    if plan.constraints:
        models = models_left(plan, plan.required)
        text = list_bracketed(models, _MOST_MODELS) if models else "no known GPU"
        yield show_row("spec.require.models left", models, text, ())
    floor = (*_whose(plan), *remarks.notes(lambda remark: remark.rule == "checkpoint_grace")) if plan.settings.grace_min is not None else ()
    for path in (path for path in others if wording.field_at(path).merge != "each"):
        yield from rows(plan, path, floor if path == _FLOOR else ())


def allow_rows(plan: Plan) -> Iterator[EffectiveRow]:
    """Yield what the cluster's policies allow to namespaces' own policies and to authors."""
    for path in wording.paths("spec.allow"):
        yield from rows(plan, path)


def constraint_row(plan: Plan, constraint: Constraint, notes: Sequence[str] = ()) -> EffectiveRow:
    """Return the row of a constraint on one axis, with the value of the first of its policies."""
    value = next(value for who, value in given_values(plan, constraint.field) if who in constraint.by)
    return row(constraint.field, value, constraint.by, notes)


def _narrower(plan: Plan, constraint: Constraint) -> Iterator[str]:
    for other in plan.constraints:
        within = other.rows & ~constraint.rows == 0
        if other.axis == constraint.axis and within and other.rows != constraint.rows:
            yield f"already implied by {other.by[0]}: {other.text}"


def models_left(plan: Plan, rows: int) -> list[str]:
    """Return the GPU models in these rows, of the vendors asked for, by name; ``others`` stands for models
    that the catalog lacks."""
    found: set[str] = set()
    for table in plan.snapshot.tables.values():
        for offer in table.offers_in(rows):
            if offer.host.vendor in plan.vendors:
                found.add("others" if offer.host.gpu is None else offer.host.gpu.model)
    return [*sorted(found - {"others"}), *(["others"] if "others" in found else [])]


def capacities_left(plan: Plan) -> list[str]:
    """Return the capacities that are left for the vendors asked for."""
    tables = plan.snapshot.tables.values()
    return [c for c in CAPACITIES if any(plan.inside & table.by_capacity.get(c, 0) for table in tables)]


def _whose(plan: Plan) -> Iterator[str]:
    """Yield a note if the minimum grace period does not apply to the pod's actor, or only without an
    opt-out."""
    if plan.actor.floor == "no":
        yield f"does not apply to {' and '.join(plan.actor.names)}"
    elif plan.actor.floor == "opt-out":
        yield f"does not apply to {' and '.join(plan.actor.names)} with the annotation {OPT_OUT}: grace"
