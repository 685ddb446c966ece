"""Compute the expressions to write into each required node affinity term: R, the same for each term, unless
the term already implies it.

With several platforms each term becomes one alternative per platform, and a positive expression restricts
each alternative to its platform. A term that names a platform's own key remains a term of that platform.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kube.labels import POSITIVE, Expression
from policies.messages import phrase
from policies.offers.constraints import Constraint, fields, meet, who
from policies.offers.label_readings import spelled
from policies.offers.selectors import Rendering, by_other_labels, by_types, render, renderings, slice_by_label
from policies.offers.table import AXES, Axis, Table
from policies.planning import feasibility
from policies.planning.feasibility import AuthorExpression, Cell, RequiredTerm
from policies.planning.plan import Plan, unread
from policies.planning.requirements import Sayable
from policies.verdict import Remark

MOST_TERMS = 16
"""With more terms than this, only the first platform's alternatives are written: the scheduler evaluates
every term on every node."""


class WrittenExpression(NamedTuple):
    """One expression to add, with the policies that ask for it."""

    expression: Expression
    rule: str
    policies: tuple[str, ...]


class PlatformTerm(NamedTuple):
    """One term on one platform, with the expressions to add."""

    cell: Cell
    added: tuple[WrittenExpression, ...]
    alive: bool
    """True if an offer inside R is left."""
    clash: tuple[AuthorExpression, Expression] | None
    """An undecided expression of the author's, and the expression to write on the same key, if they have
    no value in common."""
    remarks: tuple[Remark, ...]
    """Remarks about requirements that the platform cannot express in this term."""


_Additions = tuple[list[WrittenExpression], list[Remark]]
"""The expressions added to a term, and the remarks about those that cannot be added."""


@dataclass(frozen=True, slots=True)
class TermPlan:
    """The alternatives that replace one term. ``index`` is None if the pod has no required terms and gets
    these. Without alternatives the term stays as it is."""

    index: int | None
    alternatives: tuple[PlatformTerm, ...]
    remarks: tuple[Remark, ...] = ()
    """The remarks of every alternative, including those that are not taken."""


def term_plans(plan: Plan) -> tuple[tuple[TermPlan, ...], tuple[Remark, ...]]:
    """Return one plan per non-empty term, in order, and the remarks about them."""
    known = {(cell.term.index, cell.platform): cell for cell in plan.space.cells}
    plans = [_term_plan(plan, term, known) for term in plan.terms]
    remarks = [remark for term in plans for remark in term.remarks]
    if sum(max(1, len(p.alternatives)) for p in plans) > MOST_TERMS and any(len(p.alternatives) > 1 for p in plans):
        found = phrase("text", most=MOST_TERMS)
        remarks.append(Remark(code="BERTH-209", found=found, rule="node_affinity", policies=who(plan.constraints)))
        plans = [replace(p, alternatives=p.alternatives[:1]) for p in plans]
    return tuple(plans), tuple(remarks)


_Cells = Mapping[tuple[int | None, str], Cell]
"""(index of the term, platform) -> the plan's cell"""


def _term_plan(plan: Plan, term: RequiredTerm, known: _Cells) -> TermPlan:
    options = [option for table in plan.snapshot.tables.values() if (option := _alternative(plan, table, term, known)) is not None]
    remarks = tuple(remark for option in options for remark in option.remarks)
    possible = [o for o in options if o.cell.possible] or sorted(options, key=lambda o: -len(o.cell.positive))[:1]
    alive = _best_checked(plan, [o for o in possible if o.alive]) or [_closed(plan, o) for o in possible[:1]]
    nothing_to_say = all(not o.added for o in alive) and len(alive) == len(possible)
    if nothing_to_say and (len(possible) > 1 or not plan.constraints):
        return TermPlan(term.index, (), remarks)
    # One platform may be possible only in theory: somebody may have cut slices on nodes of another one.
    if len(possible) > 1 or plan.constraints:
        alive = [o._replace(added=(*o.added, *more)) if (more := held(plan, o.cell, o.added)) else o for o in alive]
    return TermPlan(term.index, tuple(alive) if any(o.added for o in alive) else (), remarks)


def _best_checked(plan: Plan, alive: list[PlatformTerm]) -> list[PlatformTerm]:
    """Return the alternatives without those that leave out more of what is required than another does, for want of a label that somebody
    maintains: a pod would go where nothing is checked. One whose author says something of nodes that is not understood may mean just
    those, and would wait for ever elsewhere."""
    if not any(o.cell.table.unmaintained for o in alive) or unread(plan) is not None:
        return alive
    left_out = [_left_out(plan, option.cell) for option in alive]
    return [o for o, mine in zip(alive, left_out, strict=True) if not any(other < mine for other in left_out)]


def _left_out(plan: Plan, cell: Cell) -> frozenset[tuple[tuple[str, ...], str]]:
    """Return the requirements that are neither written nor implied in a term, as (policies, field)."""
    if not cell.table.unmaintained:
        return frozenset()
    by_axis = ((axis, [c for c in sayable(plan, cell, axis).unexpressed if c.field.startswith("spec.require")]) for axis in AXES)
    return frozenset((c.by, c.field) for axis, left in by_axis for c in left if not _implied(plan, cell, axis, meet(cell.table.all, left)))


def _closed(plan: Plan, option: PlatformTerm) -> PlatformTerm:
    """Complete a term in which nothing of R is left, so that it selects nothing even where R cannot be
    expressed in full."""
    table, rows = option.cell.table, option.cell.rows
    for written in option.added:
        rows &= table.select(written.expression.key, written.expression.operator, written.expression.values)[0]
    if option.clash is not None or not option.cell.leaves(rows):
        return option
    nothing = render(plan.snapshot.catalog, table, "machine", 0, option.cell.universe)
    policies = who([c for axis in AXES for c in plan.on_axis(axis)])
    closing = [WrittenExpression(e, "node_affinity", policies) for e in (nothing.expressions if nothing is not None else ())]
    return option._replace(added=(*option.added, *(w for w in closing if not option.cell.term.has(w.expression))))


def _alternative(plan: Plan, table: Table, term: RequiredTerm, known: _Cells) -> PlatformTerm | None:
    cell = known.get((term.index, table.platform.name))
    added = [w for w in _chosen_labels(plan, table) if not term.has(w.expression)]
    if added or cell is None or cell.term is not term:
        if feasibility.names_other_platform(plan.snapshot, table, term):
            return None
        cell = _completed(plan, table, term, added)
    there = term.has if cell.possible else term.implies  # in a term that selects nothing, sets prove nothing
    remarks: list[Remark] = []
    for axis in AXES:
        written, left_out = _axis(plan, cell, axis)
        added += [w for w in written if not there(w.expression)]
        remarks += left_out
    alive = cell.leaves(plan.inside)
    if not alive and cell.possible:
        emptied, left_out = _emptied(plan, table, term, added)
        added += emptied
        remarks += left_out
    found = clash(cell, (w.expression for w in added)) if cell.undecided else None
    return PlatformTerm(cell, tuple(added), alive and found is None, found, tuple(remarks))


def _emptied(plan: Plan, table: Table, term: RequiredTerm, added: Sequence[WrittenExpression]) -> _Additions:
    """Return what must still be added where the additions leave the term nothing: read again in that form,
    by the next call, the term implies nothing."""
    emptied = _completed(plan, table, term, added)
    if emptied.possible:
        return [], []
    by_axis = [_axis(plan, emptied, axis) for axis in AXES]
    return [w for written, _ in by_axis for w in written if not emptied.term.implies(w.expression)], [
        r for _, left_out in by_axis for r in left_out
    ]


def _completed(plan: Plan, table: Table, term: RequiredTerm, added: Sequence[WrittenExpression]) -> Cell:
    """Return the cell of the term on a table, read with the added expressions."""
    expressions = [AuthorExpression(w.expression.key, w.expression.operator, w.expression.values, "Berth") for w in added]
    return feasibility.read_one(plan.snapshot, table, replace(term, expressions=(*term.expressions, *expressions)), plan.space.wanted)


def _chosen_labels(plan: Plan, table: Table) -> list[WrittenExpression]:
    """Return the labels of the chosen template, and that of the chosen slice where it is chosen by label."""
    written, chosen = [], plan.slice
    if plan.template is not None:
        written = [WrittenExpression(label, "node_affinity", plan.template_by) for label in plan.template.labels]
    if chosen is not None and chosen.resource == chosen.old:
        label = slice_by_label(plan.snapshot.catalog, table, chosen.profile, plan.inside & table.all)
        written += [WrittenExpression(e, "mig_resources", chosen.policies) for e in (label.expressions if label else ())]
    return written


def _axis(plan: Plan, cell: Cell, axis: Axis) -> _Additions:
    """Return what one axis adds to one term. That is nothing if the axis is unconstrained, implied, or
    cannot be expressed here, which is remarked."""
    expressed = sayable(plan, cell, axis)
    remarks = list(_inexpressible(plan, cell, axis, expressed)) if expressed.unexpressed or expressed.lacking else []
    if not expressed.rendering.expressions or _implied(plan, cell, axis, expressed.rows):
        return [], remarks
    expressions = expressed.rendering.expressions
    if cell.renamed:
        expressions = tuple(_as_the_author_spells(cell, e) for e in expressions)
    return [WrittenExpression(e, "node_affinity", expressed.policies) for e in expressions], remarks


def _as_the_author_spells(cell: Cell, expression: Expression) -> Expression:
    """Add the other names of machines to an expression if the term uses such names: with the plain names
    alone it would select none of the term's nodes."""
    names = cell.table.other_names.get(expression.key, {})
    spellings = [value for authored in cell.term.expressions if authored.key == expression.key for value in authored.values]
    return expression._replace(values=spelled(names, spellings, expression.values))


def _inexpressible(plan: Plan, cell: Cell, axis: Axis, expressed: Sayable) -> Iterator[Remark]:
    """Yield a remark per constraint that cannot be expressed. None is made if the term lies inside R
    anyway, nor about defaults: the status of the policy reports which defaults a platform cannot express."""
    platform, constraints, unexpressed = cell.platform, plan.on_axis(axis), expressed.unexpressed
    if unexpressed and _implied(plan, cell, axis, meet(cell.table.all, constraints)):
        unexpressed = ()
    for c in constraints:
        if (c in unexpressed or platform in c.inexpressible) and not c.field.startswith("spec.default"):
            found = phrase("text", constraint=c.text, platform=platform)
            yield Remark(code="BERTH-205", found=found, rule="node_affinity", fields=fields([c]))


def _implied(plan: Plan, cell: Cell, axis: Axis, inside: int) -> bool:
    """Return whether the term already lies inside R: by a positive expression of the platform, or by
    resource name alone."""
    if not cell.possible:
        return False
    if not any(cell.table.of_resource(name) & ~inside for name in plan.space.wanted):
        return True
    return axis in cell.positive and cell.lies_inside(inside)


def held(plan: Plan, cell: Cell, added: Sequence[WrittenExpression] = ()) -> list[WrittenExpression]:
    """Return what must be added to restrict a term to its platform: a positive expression on a key that no
    other listed platform has."""
    table, term = cell.table, cell.term
    others = [t for t in plan.snapshot.tables.values() if t is not table]
    if not others:
        return []
    policies = who([c for axis in AXES for c in plan.on_axis(axis)])
    if table.platform.cloud is None:
        absent = [Expression(key=t.platform.anchor, operator="DoesNotExist") for t in others]
        return [WrittenExpression(e, "node_affinity", policies) for e in absent if not term.has(e)]
    keys = {key for key in (table.platform.anchor, *table.platform.labels) if not any(key in t.values for t in others)}
    positive = [s.key for s in term.expressions if s.operator in POSITIVE]
    positive += [w.expression.key for w in added if w.expression.operator in POSITIVE]
    if keys.intersection(positive):
        return []
    return [WrittenExpression(Expression(key=table.platform.anchor, operator="Exists"), "node_affinity", policies)]


# --- the part of R that one platform can express in one term, and the expressions for it -------------------------------


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


def rows_left(plan: Plan, cell: Cell) -> int:
    """Return the rows that R leaves in a term. A default counts there only as far as it can be written: at the next call it
    reads as the pod's own requirement."""
    return plan.required & rows_as_said(plan, cell) if plan.writes else plan.inside


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
        case "DoesNotExist":
            return authored.operator in POSITIVE
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
