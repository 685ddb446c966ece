"""Defaults, axis by axis: nodeTemplate, mig, machine, capacity. Each is applied only if it leaves an offer.

On each axis the first that specifies something decides: the pod, its annotation, the namespace's own
policies, the cluster's. Within one scope the policies that match must agree; otherwise none of them is
applied and the conflict is remarked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from policies.messages import phrase
from policies.offers.constraints import Compiled, Constraint, fields, meet, who
from policies.planning.expressible import rows_as_said
from policies.planning.feasibility import Cell
from policies.planning.mig_slice import choose_slice
from policies.planning.plan import Plan
from policies.planning.precedence import left_out, neither_acts, speaks, spoken, unread
from policies.planning.requirement_words import describe_expression
from policies.planning.template_choice import choose_template
from policies.pods.annotations import is_long


def choose(plan: Plan) -> Plan:
    """Return the plan with its defaults filled in, in order."""
    choosing = plan.demands.choosing
    if choosing and (authored := unread(plan)) is not None:
        plan = plan._replace(unread=authored)
    plan = choose_slice(choose_template(plan))
    if plan.unread is None:
        plan = _machine_and_capacity(plan)
    else:
        plan = plan.saying("BERTH-204", phrase("unread", authored=describe_expression(plan.unread)), "node_affinity", choosing)
    spot = _who_named_spot(plan)
    return plan._replace(spot=spot) if spot else plan


# --- machine and capacity ----------------------------------------------------------------------------------------------


def _machine_and_capacity(plan: Plan) -> Plan:
    vocabulary, seconds = plan.snapshot.vocabulary, plan.author.seconds
    if not speaks(plan, vocabulary.machine):
        plan = _narrowed(plan, "machine", lambda c: c.machine or None)
    elsewhere = any(cell.of_twins for cell in plan.space.cells if cell.renamed)
    if not elsewhere and not speaks(plan, vocabulary.capacity):
        plan = _narrowed(plan, "capacity", lambda c: _capacity(c, seconds))
    return plan


def _capacity(compiled: Compiled, seconds: Fraction | None) -> tuple[Constraint, ...] | None:
    """Return ``longRuns`` in place of ``capacity`` if the run is long."""
    long_runs = compiled.policy.default.long_runs
    if compiled.capacity_long is not None and long_runs is not None and is_long(seconds, long_runs):
        return (compiled.capacity_long,)
    return None if compiled.capacity is None else (compiled.capacity,)


def _alike(constraints: Sequence[Constraint]) -> object:
    return tuple((c.field if c.axis == "machine" else "", c.rows) for c in constraints)


def _named(constraints: Sequence[Constraint], names: tuple[str, ...]) -> tuple[Constraint, ...]:
    return tuple(replace(c, by=names) for c in constraints)


def _narrowed(plan: Plan, axis: str, value: Callable[[Compiled], tuple[Constraint, ...] | None]) -> Plan:
    """Return the plan with the default of one axis, if that leaves something."""
    if not plan.actor.chooses:
        return left_out(plan, axis, value)
    default = spoken(plan, axis, value, _alike, _named)
    if default is None or default.value is None:
        return plan if default is None else neither_acts(plan, axis, default.policies)
    if not plan.placeable or not plan.space.left(plan.inside):
        return plan
    constraints, sure, inside = default.value, plan.inside, meet(plan.inside, default.value)
    for constraint in constraints:
        sure &= constraint.sure
    tried = plan.narrowed(constraints, sure)
    if _can_be_had(tried):
        return _clipped(tried if inside == sure else tried._replace(inside=inside), constraints, default.policies)
    if plan.slice is not None:  # with a slice, machine fields place the whole GPUs instead: nothing is lost
        return plan
    found = phrase("nothing left", constraints=tuple(c.text for c in constraints))
    return plan.saying("BERTH-204", found, "node_affinity", default.policies, on=fields(constraints))


def _can_be_had(plan: Plan) -> bool:
    """Return whether something of R is left in some term, by what can be expressed there: on AKS, spot
    alone of [spot, reserved]."""
    left = (cell for cell in plan.space.cells if cell.leaves(plan.inside))
    return any(not _writes(plan) or cell.leaves(plan.inside & rows_as_said(plan, cell)) for cell in left)


def _writes(plan: Plan) -> bool:
    return plan.snapshot.placed and plan.actor.affinity == "write"


def _clipped(plan: Plan, constraints: Sequence[Constraint], names: Sequence[str]) -> Plan:
    for constraint in constraints:
        if constraint.narrows and _loses(plan, constraint):
            plan = plan.saying("BERTH-203", phrase("clipped", constraint=constraint.text), "node_affinity", names, on=fields([constraint]))
    return plan


def _loses(plan: Plan, constraint: Constraint) -> bool:
    """Return whether ``require`` removes part of a default on its own axis."""
    return any(constraint.sure & ~other.rows for other in plan.constraints if other.axis == constraint.axis)


def _who_named_spot(plan: Plan) -> tuple[str, ...]:
    """Return the policies that account for a capacity named by a policy or by the pod itself, if what is
    left includes spot."""
    named = set(who(c for c in (*plan.constraints, *plan.chosen) if c.axis == "capacity"))
    if plan.template is not None and plan.template.template.capacity:
        named.update(plan.template_by)
    if named or speaks(plan, plan.snapshot.vocabulary.capacity):  # what a policy names is written, and counts on the second call
        named.update(plan.settings.taints)
    return tuple(sorted(named)) if named and any(_holds_spot(plan, cell) for cell in plan.space.cells) else ()


def _holds_spot(plan: Plan, cell: Cell) -> bool:
    """Return whether spot is left in a term. A default counts there only as far as it can be written: at
    the next call it reads as the pod's own requirement, and where it cannot be written, nothing is there."""
    if not cell.leaves(plan.inside):
        return False
    rows = plan.required & rows_as_said(plan, cell) if _writes(plan) else plan.inside
    spot = rows & cell.table.by_capacity.get("spot", 0)
    return any(offered & spot for offered in cell.offered)
