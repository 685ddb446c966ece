"""What of R one platform can say in one term, and in which words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from policies.catalog import Expression
from policies.compiled import Constraint
from policies.offers import Axis, Table
from policies.placement import Cell, Said
from policies.plan import Plan
from policies.render import Rendering, by_other_labels, by_types, renderings


@dataclass(frozen=True, slots=True)
class Sayable:
    """R on one axis, as far as one platform can say it: what is written there, and what is judged there."""

    rows: int
    rendering: Rendering
    """no expressions: nothing needs to be said, or nothing can be"""
    unsaid: tuple[Constraint, ...]
    """left out, because with them R could not be said"""


def sayable(plan: Plan, cell: Cell, axis: Axis) -> Sayable:
    """All of R; where that can't be said, constraint by constraint what can: the cluster's first, so that a namespace's own
    policy or a default which can't be said never takes away what the cluster requires (law 5)."""
    rows, rendering = cell.table.all, Rendering((), cell.table.all, True)
    unsaid: list[Constraint] = []
    for group, inside in _by_scope(plan, axis):
        for part in _together_or_one_by_one(plan, cell, axis, group, rows, inside):
            narrowed = inside_of(cell.table, part, rows)
            said = _said(plan, cell, axis, narrowed, inside)
            if said is None:
                unsaid.extend(part)
            else:
                rows, rendering = narrowed, said
    return Sayable(rows, rendering, tuple(unsaid))


def _together_or_one_by_one(
    plan: Plan, cell: Cell, axis: Axis, group: Sequence[Constraint], rows: int, inside: Mapping[str, int]
) -> list[Sequence[Constraint]]:
    if len(group) == 1 or _said(plan, cell, axis, inside_of(cell.table, group, rows), inside) is not None:
        return [group]
    return [[constraint] for constraint in group]


def _said(plan: Plan, cell: Cell, axis: Axis, rows: int, inside: Mapping[str, int]) -> Rendering | None:
    """None also where only parts can be said, and each would leave this term nothing of ``inside``, which has something."""
    if (
        axis == "machine"
        and cell.renamed
        and cell.of_twins
        and (by_type := by_types(cell.table, rows, universe(plan, cell.table))) is not None
    ):
        return by_type
    found = renderings(plan.snapshot.catalog, cell.table, axis, rows, universe(plan, cell.table))
    if found and found[0].exact:  # then it is alone
        return _beside_the_unknown(plan, cell, axis, found[0]) if cell.undecided else found[0]
    if not plan.space.leaves(cell, inside):
        return found[0] if found else None
    return next((rendering for rendering in found if rendering.exact or _is_of_use(plan, cell, rendering, inside)), None)


def _beside_the_unknown(plan: Plan, cell: Cell, axis: Axis, rendering: Rendering) -> Rendering:
    """By other labels, where the author names a type of machine that nobody knows and this would contradict it: the machine may well be
    inside R. Instance families are told by types alone."""
    found = clash(cell, rendering.expressions) if axis == "machine" else None
    if found is None or not _of_types(cell, found[0].key) or any(c.field.endswith(".instanceFamilies") for c in plan.on_axis(axis)):
        return rendering
    types = [key for key in cell.table.platform.labels if _of_types(cell, key)]
    return by_other_labels(cell.table, types, rendering.rows, universe(plan, cell.table)) or rendering


def clash(cell: Cell, expressions: Iterable[Expression]) -> tuple[Said, Expression] | None:
    """An undecided expression of the author that shares no value with one to be written about the same thing."""
    expressions = list(expressions)
    return next(((said, e) for said in cell.undecided for e in expressions if _contradict(cell, said, e)), None)


def _of_types(cell: Cell, key: str) -> bool:
    return cell.table.platform.labels.get(key) == "type"


def _contradict(cell: Cell, said: Said, expression: Expression) -> bool:
    if expression.key != said.key and not (_of_types(cell, said.key) and _of_types(cell, expression.key)):
        return False
    inside = set(said.values) & set(expression.values)
    match expression.operator:
        case "In":
            return not inside
        case "NotIn":
            return len(inside) == len(set(said.values))
    return False


def _is_of_use(plan: Plan, cell: Cell, part: Rendering, inside: Mapping[str, int]) -> bool:
    offered, left = list(plan.space.offered(cell)), part.rows & inside[cell.table.platform.name]
    lost = [rows for rows in offered if not rows & left]
    return not lost or (len(lost) < len(offered) and not all(rows & part.rows for rows in offered))


def _by_scope(plan: Plan, axis: Axis) -> Iterator[tuple[Sequence[Constraint], Mapping[str, int]]]:
    """The cluster's constraints, the namespace's own, what was chosen; each with R as far as it was known then."""
    together = plan.demands
    if together.cluster[axis]:
        yield together.cluster[axis], plan.required
    if together.own[axis]:
        yield together.own[axis], plan.required
    if plan.chosen or plan.template is not None:
        chosen = plan.chosen_on(axis)
        if chosen:
            yield chosen, plan.inside


def inside_of(table: Table, constraints: Sequence[Constraint], rows: int) -> int:
    """What these constraints leave of ``rows``."""
    for constraint in constraints:
        rows &= constraint.rows[table.platform.name]
    return rows


def universe(plan: Plan, table: Table) -> int:
    """The rows of the vendors whose devices the pod asks for."""
    return table.of_vendors(tuple(plan.space.wanted))
