"""The part of R that one platform can express in one term, and the expressions for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kube.labels import Expression
from policies.offers.constraints import Constraint, meet, who
from policies.offers.selectors import Rendering, by_other_labels, by_types, renderings
from policies.offers.table import AXES, Axis
from policies.planning.feasibility import AuthorExpression, Cell
from policies.planning.plan import Plan
from policies.planning.requirements import Sayable


def sayable(plan: Plan, cell: Cell, axis: Axis) -> Sayable:
    """Return all of R on one axis if the platform can express that exactly, else the part that can be
    expressed in this term."""
    if not cell.undecided and not cell.renamed:
        key = (axis, cell.table.platform.name, cell.universe, plan.chosen_key)
        known = plan.demands.whole
        if key not in known:
            known[key] = _whole(plan, cell, axis, plan.chosen_on.get(axis, ()))
        found = known[key]
        if found is not None:
            return found
    return _in_part(plan, cell, axis)


def rows_as_said(plan: Plan, cell: Cell) -> int:
    """Return the rows that a term selects once R is written into it, as far as its platform can express
    it."""
    if cell.undecided or cell.renamed:
        return _rows_as_said(plan, cell)
    key = (cell.table.platform.name, cell.universe, plan.chosen_key)
    rows = plan.demands.rows.get(key)
    if rows is None:
        rows = _rows_as_said(plan, cell)
        if all(plan.demands.whole[axis, *key] is not None for axis in AXES):
            plan.demands.rows[key] = rows
    return rows


def _rows_as_said(plan: Plan, cell: Cell) -> int:
    rows = cell.table.all
    for axis in AXES:
        expressed = sayable(plan, cell, axis)
        if expressed.rendering.expressions:
            rows &= expressed.rendering.rows
    return rows


def _whole(plan: Plan, cell: Cell, axis: Axis, chosen: Sequence[Constraint]) -> Sayable | None:
    """Return the rendering that is the same in every term that the catalog understands: computed once per
    set of policies, platform and axis. None if R cannot be expressed exactly."""
    rows, rendering = cell.table.all, Rendering((), cell.table.all, exact=True)
    for group in (plan.demands.cluster[axis], plan.demands.own[axis], chosen):
        if group:
            rows = meet(rows, group)
            options = renderings(plan.snapshot.catalog, cell.table, axis, rows, cell.universe)
            if not options or not options[0].exact:
                return None
            rendering = options[0]
    return _sayable(plan, cell, axis, rows, rendering)


def _sayable(plan: Plan, cell: Cell, axis: Axis, rows: int, rendering: Rendering, unexpressed: Sequence[Constraint] = ()) -> Sayable:
    constraints = plan.on_axis(axis)
    lacking = any(cell.platform in c.inexpressible for c in constraints)
    return Sayable(rows, rendering, tuple(unexpressed), lacking, who(c for c in constraints if c not in unexpressed))


def _in_part(plan: Plan, cell: Cell, axis: Axis) -> Sayable:
    """Return the part that can be expressed, constraint by constraint. The cluster's constraints come
    first, so that a constraint of the namespace's own policy or a default that cannot be expressed never
    takes away what the cluster requires (``docs/laws.md``, law 5: "team policies only tighten")."""
    rows, rendering = cell.table.all, Rendering((), cell.table.all, exact=True)
    unexpressed: list[Constraint] = []
    for group, inside in _by_scope(plan, axis):
        for part in _together_or_one_by_one(plan, cell, axis, group, rows, inside):
            narrowed = meet(rows, part)
            narrower = _rendering(plan, cell, axis, narrowed, inside)
            if narrower is None:
                unexpressed.extend(part)
            else:
                rows, rendering = narrowed, narrower
    return _sayable(plan, cell, axis, rows, rendering, unexpressed)


def _together_or_one_by_one(
    plan: Plan, cell: Cell, axis: Axis, group: Sequence[Constraint], rows: int, inside: int
) -> list[Sequence[Constraint]]:
    if len(group) == 1 or _rendering(plan, cell, axis, meet(rows, group), inside) is not None:
        return [group]
    return [[constraint] for constraint in group]


def _rendering(plan: Plan, cell: Cell, axis: Axis, rows: int, inside: int) -> Rendering | None:
    """Return the rendering of these rows, or None. None also means that only parts can be expressed, and
    each would leave this term nothing of ``inside``, which has something."""
    if axis == "machine" and cell.renamed and cell.of_twins and (by_type := by_types(cell.table, rows, cell.universe)) is not None:
        return by_type
    found = renderings(plan.snapshot.catalog, cell.table, axis, rows, cell.universe)
    if found and found[0].exact:  # then it is alone
        return _beside_the_unknown(plan, cell, axis, found[0]) if cell.undecided else found[0]
    if not cell.leaves(inside):
        return found[0] if found else None
    return next((rendering for rendering in found if rendering.exact or _is_of_use(cell, rendering, inside)), None)


def _beside_the_unknown(plan: Plan, cell: Cell, axis: Axis, rendering: Rendering) -> Rendering:
    """Return a rendering by other labels if the author names an unknown machine type that this one would
    contradict: the machine may well be inside R. Instance families can be expressed by types alone."""
    found = clash(cell, rendering.expressions) if axis == "machine" else None
    if found is None or not _of_types(cell, found[0].key) or any(c.field.endswith(".instanceFamilies") for c in plan.on_axis(axis)):
        return rendering
    types = [key for key in cell.table.platform.labels if _of_types(cell, key)]
    return by_other_labels(cell.table, types, rendering.rows, cell.universe) or rendering


def clash(cell: Cell, expressions: Iterable[Expression]) -> tuple[AuthorExpression, Expression] | None:
    """Return an undecided expression of the author's that shares no value with one to be written about the
    same thing, and that one."""
    expressions = list(expressions)
    return next(((authored, e) for authored in cell.undecided for e in expressions if _contradict(cell, authored, e)), None)


def _of_types(cell: Cell, key: str) -> bool:
    return cell.table.platform.labels.get(key) == "type"


def _contradict(cell: Cell, authored: AuthorExpression, expression: Expression) -> bool:
    if expression.key != authored.key and not (_of_types(cell, authored.key) and _of_types(cell, expression.key)):
        return False
    inside = set(authored.values) & set(expression.values)
    match expression.operator:
        case "In":
            return not inside
        case "NotIn":
            return len(inside) == len(set(authored.values))
    return False


def _is_of_use(cell: Cell, part: Rendering, inside: int) -> bool:
    left = part.rows & inside
    lost = [rows for rows in cell.offered if not rows & left]
    return not lost or (len(lost) < len(cell.offered) and not all(rows & part.rows for rows in cell.offered))


def _by_scope(plan: Plan, axis: Axis) -> Iterator[tuple[Sequence[Constraint], int]]:
    """Yield the cluster's constraints, the namespace's own and the chosen defaults, each with R as far as
    it was known then."""
    together = plan.demands
    scopes = (
        (together.cluster[axis], together.required_by_cluster),
        (together.own[axis], plan.required),
        (plan.chosen_on.get(axis, ()), plan.inside),
    )
    yield from ((constraints, inside) for constraints, inside in scopes if constraints)
