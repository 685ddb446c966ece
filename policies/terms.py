"""What is to be written into each required node affinity term: R, the same for each, unless already implied.

With several platforms each term becomes one alternative per platform, each held to its platform by a positive
expression; a term that names a platform's own key stays that platform's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from policies import placement
from policies.catalog import Expression
from policies.compiled import Constraint, who
from policies.offers import AXES, Axis, Table
from policies.placement import Cell, Said, Term
from policies.plan import Plan
from policies.readings import spelled
from policies.render import render, slice_by_label
from policies.sayable import clash, inside_of, sayable, universe

MOST_TERMS = 16
"""Past this the first platform alone is written. The scheduler evaluates every term on every node."""


@dataclass(frozen=True, slots=True)
class Written:
    """One expression to add, with who asks."""

    expression: Expression
    rule: str
    policies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One term on one platform, completed."""

    cell: Cell
    added: tuple[Written, ...]
    alive: bool
    """whether an offer inside R is left"""
    clash: tuple[Said, Expression] | None
    """an undecided expression of the author that shares no value with the one written on its key"""


@dataclass(frozen=True, slots=True)
class TermPlan:
    """``index`` None: the pod has no required terms and gets these. No alternatives: the term stays as it is."""

    index: int | None
    alternatives: tuple[Alternative, ...]


def term_plans(plan: Plan) -> tuple[TermPlan, ...]:
    """One per non-empty term, in order."""
    plans = [_term_plan(plan, term) for term in plan.terms]
    if sum(max(1, len(p.alternatives)) for p in plans) > MOST_TERMS and any(len(p.alternatives) > 1 for p in plans):
        names = who(plan.constraints)
        plan.remark("BERTH-209", f"over {MOST_TERMS} node affinity terms: only the first platform is written", "node_affinity", names)
        plans = [replace(p, alternatives=p.alternatives[:1]) for p in plans]
    return tuple(plans)


def _term_plan(plan: Plan, term: Term) -> TermPlan:
    options = [option for table in plan.snapshot.tables.values() if (option := _alternative(plan, table, term)) is not None]
    possible = [o for o in options if plan.space.possible(o.cell)] or sorted(options, key=lambda o: -len(o.cell.positive))[:1]
    alive = [o for o in possible if o.alive] or [_closed(plan, o) for o in possible[:1]]
    nothing_to_say = all(not o.added for o in alive) and len(alive) == len(possible)
    if nothing_to_say and (len(possible) > 1 or not plan.constraints):
        return TermPlan(term.index, ())
    # One platform may be possible in thought alone: somebody may have cut slices on nodes of another one.
    if len(possible) > 1 or plan.constraints:
        alive = [replace(o, added=(*o.added, *held(plan, o.cell, o.added))) for o in alive]
    return TermPlan(term.index, tuple(alive) if any(o.added for o in alive) else ())


def _closed(plan: Plan, option: Alternative) -> Alternative:
    """A term in which nothing of R is left selects nothing, also where R can't be said in full."""
    table, rows = option.cell.table, option.cell.rows
    for written in option.added:
        rows &= table.select(written.expression.key, written.expression.operator, written.expression.values)[0]
    if option.clash is not None or not all(rows & offered for offered in plan.space.offered(option.cell)):
        return option
    nothing = render(plan.snapshot.catalog, table, "machine", 0, universe(plan, table))
    policies = who([c for axis in AXES for c in plan.on_axis(axis)])
    closing = [Written(e, "node_affinity", policies) for e in (nothing.expressions if nothing is not None else ())]
    return replace(option, added=(*option.added, *(w for w in closing if not option.cell.term.has(w.expression))))


def _alternative(plan: Plan, table: Table, term: Term) -> Alternative | None:
    if placement.names_other_platform(plan.snapshot, table, term):
        return None
    added = list(_template_labels(plan, term))
    added += _slice_label(plan, table)
    added = [w for w in added if not term.has(w.expression)]
    completed = replace(term, said=(*term.said, *(_as_said(w) for w in added)))
    cell = placement.read_one(plan.snapshot, table, completed)
    there = term.has if plan.space.possible(cell) else term.implies  # in a term that selects nothing, sets tell nothing
    for axis in AXES:
        added += [w for w in _axis(plan, cell, axis) if not there(w.expression)]
    alive = plan.space.leaves(cell, plan.inside)
    if not alive and plan.space.possible(cell):
        added += _emptied(plan, table, term, added)
    found = clash(cell, (w.expression for w in added)) if cell.undecided else None
    return Alternative(cell, tuple(added), alive and found is None, found)


def _emptied(plan: Plan, table: Table, term: Term, added: Sequence[Written]) -> list[Written]:
    """What is still to be said where what is added leaves the term nothing: read again so, by the next call, it implies nothing."""
    emptied = placement.read_one(plan.snapshot, table, replace(term, said=(*term.said, *(_as_said(w) for w in added))))
    if plan.space.possible(emptied):
        return []
    return [w for axis in AXES for w in _axis(plan, emptied, axis) if not emptied.term.implies(w.expression)]


def _as_said(written: Written) -> Said:
    return Said(written.expression.key, written.expression.operator, written.expression.values, "Berth")


def _template_labels(plan: Plan, term: Term) -> Iterator[Written]:
    if plan.template is not None:
        for key, value in plan.template.template.labels:
            if not term.demands(key, value):
                yield Written(Expression(key=key, operator="In", values=(value,)), "node_affinity", plan.template_by)


def _slice_label(plan: Plan, table: Table) -> list[Written]:
    chosen = plan.slice
    if chosen is None or chosen.resource != chosen.old:
        return []
    label = slice_by_label(plan.snapshot.catalog, table, chosen.profile, plan.inside[table.platform.name])
    return [Written(e, "mig_resources", chosen.policies) for e in (label.expressions if label else ())]


def _axis(plan: Plan, cell: Cell, axis: Axis) -> list[Written]:
    """What one axis adds to one term; nothing where it is unconstrained, implied, or can't be said here."""
    said = sayable(plan, cell, axis)
    _say_inexpressible(plan, cell, axis, said.unsaid)
    if not said.rendering.expressions or _implied(plan, cell, axis, said.rows):
        return []
    policies = who([c for c in plan.on_axis(axis) if c not in said.unsaid])
    expressions = said.rendering.expressions
    if cell.renamed:
        expressions = tuple(_as_the_author_spells(cell, e) for e in expressions)
    return [Written(e, "node_affinity", policies) for e in expressions]


def _as_the_author_spells(cell: Cell, expression: Expression) -> Expression:
    """With the other names of machines too where the term has such names: by the plain ones alone it would select none of its nodes."""
    names = cell.table.other_names.get(expression.key, {})
    said = [value for said in cell.term.said if said.key == expression.key for value in said.values]
    return replace(expression, values=spelled(names, said, expression.values))


def _say_inexpressible(plan: Plan, cell: Cell, axis: Axis, unsaid: Sequence[Constraint]) -> None:
    """Silent where the term lies inside R anyway, and of defaults: what a platform can't say of those, the policy's own status tells."""
    platform, constraints = cell.table.platform.name, plan.on_axis(axis)
    if unsaid and _implied(plan, cell, axis, inside_of(cell.table, constraints, cell.table.all)):
        unsaid = ()
    for c in constraints:
        if (c in unsaid or platform in c.inexpressible) and not c.field.startswith("spec.default"):
            text = f"{c.text} can't be expressed on {platform}: not written and not judged there"
            plan.remark("BERTH-205", text, "node_affinity", who([c]))


def _implied(plan: Plan, cell: Cell, axis: Axis, inside: int) -> bool:
    """Whether the term already lies inside R: by a positive expression of the platform, or by resource name alone."""
    outside = ~inside
    if not plan.space.possible(cell):
        return False
    if all(cell.table.of_resource(name) & outside == 0 for name in plan.space.wanted):
        return True
    return axis in cell.positive and all(offered & outside == 0 for offered in plan.space.offered(cell))


def held(plan: Plan, cell: Cell, added: Sequence[Written] = ()) -> list[Written]:
    """What still holds a term to its platform: a positive expression on a key that no other listed platform has."""
    table, term = cell.table, cell.term
    others = [t for t in plan.snapshot.tables.values() if t is not table]
    policies = who([c for axis in AXES for c in plan.on_axis(axis)])
    if table.platform.cloud is None:
        absent = [Expression(key=t.platform.anchor, operator="DoesNotExist") for t in others]
        return [Written(e, "node_affinity", policies) for e in absent if not term.has(e)]
    if not others:
        return []
    keys = {key for key in (table.platform.anchor, *table.platform.labels) if not any(key in t.values for t in others)}
    positive = [s.key for s in term.said if s.operator in placement.POSITIVE]
    positive += [w.expression.key for w in added if w.expression.operator in placement.POSITIVE]
    if keys.intersection(positive):
        return []
    return [Written(Expression(key=table.platform.anchor, operator="Exists"), "node_affinity", policies)]
