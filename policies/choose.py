"""Defaults, axis by axis: nodeTemplate, mig, machine, capacity; each kept only if something is left.

The first that speaks on an axis decides: the pod, its annotation, the namespace's own policies, the cluster's. Within
one scope the policies that match must say the same, or neither acts and the conflict is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from policies import placement
from policies.author import TEMPLATE, is_long
from policies.compiled import Compiled, CompiledTemplate, Constraint, who
from policies.nearest import nearest
from policies.offers import AXES
from policies.placement import Cell, Space, meet
from policies.plan import Plan
from policies.policy import TolerationPattern
from policies.sayable import sayable
from policies.silence import speaks, spoken, unread
from policies.slices import choose_slice, slice_is_left
from policies.verdict import Violation
from policies.wishes import grants


def choose(plan: Plan) -> None:
    """Fill in the defaults of the plan, in order."""
    choosing = tuple(c.policy.id for scope in plan.demands.scopes for c in scope if _chooses_nodes(c))
    plan.unread = unread(plan) if choosing else None
    _template(plan)
    choose_slice(plan)
    if plan.unread is None:
        _machine_and_capacity(plan)
    else:
        text = f"defaults about nodes do not act: {plan.unread} is about nodes, and no platform in force knows it"
        plan.remark("BERTH-204", text, "node_affinity", choosing)
    plan.spot = _who_named_spot(plan)


def _chooses_nodes(compiled: Compiled) -> bool:
    default = compiled.policy.default
    return bool(compiled.machine or compiled.capacity or compiled.capacity_long or default.mig or default.node_template)


# --- machine and capacity ----------------------------------------------------------------------------------------------


def _machine_and_capacity(plan: Plan) -> None:
    if not speaks(plan, plan.snapshot.vocabulary.machine):
        _keep(plan, "machine", lambda c: c.machine or None, key=lambda c: tuple((x.field, *sorted(x.rows.items())) for x in c.machine))
    elsewhere = any(cell.of_twins for cell in plan.space.cells if cell.renamed)
    if not elsewhere and not speaks(plan, plan.snapshot.vocabulary.capacity):
        _keep(
            plan,
            "capacity",
            lambda c: _capacity(plan, c),
            key=lambda c: tuple((*sorted(x.rows.items()),) for x in _capacity(plan, c) or ()),
        )


def _capacity(plan: Plan, compiled: Compiled) -> tuple[Constraint, ...] | None:
    """longRuns beats capacity where the run is long."""
    long_runs = compiled.policy.default.long_runs
    if compiled.capacity_long is not None and long_runs is not None and is_long(plan.author.seconds, long_runs):
        return (compiled.capacity_long,)
    return None if compiled.capacity is None else (compiled.capacity,)


def _keep(plan: Plan, axis: str, value: Callable[[Compiled], tuple[Constraint, ...] | None], key: Callable[[Compiled], object]) -> None:
    said = None if _left_out(plan, axis, value) else spoken(plan, axis, value, key)
    if said is None or not plan.placeable or not plan.space.left(plan.inside):
        return
    constraints, names = said
    before = plan.inside, plan.chosen
    plan.inside = meet(plan.inside, *(c.sure or c.rows for c in constraints))
    plan.chosen = [*plan.chosen, *(replace(c, by=names) for c in constraints)]
    if not _can_be_had(plan):
        plan.inside, plan.chosen = before
        wish = " and ".join(c.text for c in constraints)
        if plan.slice is None:  # beside a slice, machine fields say where a whole GPU goes instead: nothing is lost
            plan.remark(
                "BERTH-204", f"default {wish} leaves nothing inside what is required and asked for: it does not act", "node_affinity", names
            )
        return
    plan.inside = meet(before[0], *(c.rows for c in constraints))
    _say_clipped(plan, constraints, names)


def _left_out(plan: Plan, axis: str, value: Callable[[Compiled], object | None]) -> bool:
    """Whether no default chooses nodes for this actor; said, where one would."""
    if plan.actor.chooses:
        return False
    names = [c.policy.id for scope in plan.demands.scopes for c in scope if value(c) is not None]
    if names:
        text = f"default {axis} does not act: it is {' and '.join(plan.actor.names)}, for which no default chooses nodes"
        plan.remark("BERTH-204", text, "node_affinity", names)
    return True


def _can_be_had(plan: Plan) -> bool:
    """Whether something of R is left in some term, by what can be said there: on AKS spot alone of [spot, reserved]."""
    return any(plan.space.leaves(cell, plan.inside) and _said_too(plan, cell) for cell in plan.space.cells)


def _said_too(plan: Plan, cell: Cell) -> bool:
    if not _writes(plan):
        return plan.space.leaves(cell, plan.inside)
    return plan.space.leaves(cell, {**plan.inside, cell.platform: plan.inside[cell.platform] & _rows_as_said(plan, cell)})


def _writes(plan: Plan) -> bool:
    return plan.snapshot.placed and plan.actor.affinity == "write"


def _rows_as_said(plan: Plan, cell: Cell) -> int:
    """The rows that a term selects once R is written into it, as far as its platform can say it."""
    rows = cell.table.all
    for axis in AXES:
        said = sayable(plan, cell, axis)
        if said.rendering.expressions:
            rows &= said.rendering.rows
    return rows


def _say_clipped(plan: Plan, constraints: Sequence[Constraint], names: Sequence[str]) -> None:
    for constraint in constraints:
        clipped = any(_loses(plan, name, constraint) for name in plan.inside)
        if constraint.narrows and clipped:
            plan.remark("BERTH-203", f"default {constraint.text} is clipped to what is required", "node_affinity", names)


def _loses(plan: Plan, platform: str, constraint: Constraint) -> bool:
    """Whether ``require`` takes away part of a default on its own axis."""
    own = (constraint.sure or constraint.rows)[platform]
    rows = own
    for other in plan.constraints:
        if other.axis == constraint.axis:
            rows &= other.rows[platform]
    return rows != own & plan.snapshot.tables[platform].all


def _who_named_spot(plan: Plan) -> tuple[str, ...]:
    """Who named a capacity, by policy or as the pod itself, if what is left holds spot."""
    named = set(who(c for c in (*plan.constraints, *plan.chosen) if c.axis == "capacity"))
    if plan.template is not None and plan.template.template.capacity:
        named.update(plan.template_by)
    if named or speaks(plan, plan.snapshot.vocabulary.capacity):  # what a policy names is written, and speaks on the second call
        named.update(plan.wishes.taints)
    return tuple(sorted(named)) if named and any(_holds_spot(plan, cell) for cell in plan.space.cells) else ()


def _holds_spot(plan: Plan, cell: Cell) -> bool:
    """Whether spot is left in a term. A default counts there only as far as it can be written: by the next call it is the pod's own
    word, and where it can't be, nothing is."""
    if not plan.space.leaves(cell, plan.inside):
        return False
    rows = plan.required[cell.platform] & _rows_as_said(plan, cell) if _writes(plan) else plan.inside[cell.platform]
    spot = rows & cell.table.by_capacity.get("spot", 0)
    return any(offered & spot for offered in plan.space.offered(cell))


# --- nodeTemplate ------------------------------------------------------------------------------------------------------


def _template(plan: Plan) -> None:
    if plan.author.template is not None:
        _template_by_annotation(plan, plan.author.template)
        return
    said = (
        None
        if plan.unread is not None
        or speaks(plan, plan.snapshot.vocabulary.template)
        or _left_out(plan, "nodeTemplate", lambda c: c.policy.default.node_template)
        else spoken(plan, "nodeTemplate", lambda c: c.policy.default.node_template, lambda c: c.policy.default.node_template)
    )
    if said is None:
        return
    name, names = said
    if not plan.placeable:  # where nodes are not known nothing is chosen: BERTH-208 says so
        return
    own = [c for c in plan.policies if c.policy.id in names and c.policy.namespace is not None]
    template = plan.snapshot.templates.get(name)
    if template is None or (own and name not in plan.wishes.allowed_templates):
        why = "is not defined" if template is None else "is in no ClusterGPUPolicy's allow.nodeTemplates for this namespace"
        plan.remark("BERTH-204", f"default nodeTemplate {name} {why}: it does not act", "node_affinity", names)
        return
    if not plan.space.possible_anywhere() and not with_template(plan, template).possible_anywhere():
        return  # a pod that fits nowhere gets no defaults
    if not _take(plan, template, names) and plan.space.left(plan.inside):
        forbidders = _forbidders(plan, template)
        why = (
            f"has a taint that {' and '.join(forbidders)} forbids" if forbidders else "leaves nothing inside what is required and asked for"
        )
        plan.remark("BERTH-204", f"default nodeTemplate {name} {why}: it does not act", "node_affinity", names)


def _template_by_annotation(plan: Plan, name: str) -> None:
    allowed = sorted(plan.wishes.allowed_templates & plan.snapshot.templates.keys())
    fact = f'metadata.annotations["{TEMPLATE}"] is "{name[:40]}"'
    if name not in allowed:
        known = name in plan.snapshot.templates
        fix = "ask the platform team to add it to allow.nodeTemplates" if known else _guess(name, allowed)
        detail = f"Allowed here: {', '.join(allowed)}." if allowed else "No template is allowed in this namespace."
        why = "a template that no policy allows here" if known else "a template that does not exist"
        plan.violations.append(Violation(code="BERTH-152", fact=f"{fact}, {why}", fix=fix, detail=detail, rule="node_affinity"))
    elif plan.placeable and not _take(plan, plan.snapshot.templates[name], _granters(plan, name)) and plan.space.possible_anywhere():
        fix = "choose another, or remove what else the pod asks for"
        detail = f"{name} means {' and '.join(c.text for c in plan.snapshot.templates[name].constraints) or 'any GPU'}."
        forbidders = _forbidders(plan, plan.snapshot.templates[name])
        fact = f"{fact}, a template {'whose taint is forbidden' if forbidders else 'that leaves no node'} here"
        policies = forbidders or who(plan.constraints)
        plan.violations.append(Violation(code="BERTH-152", fact=fact, fix=fix, detail=detail, rule="node_affinity", policies=policies))


def _guess(name: str, allowed: Sequence[str]) -> str:
    near = nearest(name, allowed)
    return f'write "{near}"' if near else "remove the annotation"


def _granters(plan: Plan, name: str) -> tuple[str, ...]:
    return tuple(c.policy.id for c in plan.policies if name in c.policy.allow.node_templates)


def _take(plan: Plan, template: CompiledTemplate, names: tuple[str, ...]) -> bool:
    """Choose the template if something is left; from here on its nodes' own offers exist."""
    if _forbidders(plan, template):
        return False
    before = plan.space, plan.inside
    plan.space, plan.inside = with_template(plan, template), meet(plan.inside, template.rows)
    possible = before[0].possible_anywhere() or plan.space.possible_anywhere()
    if possible and not plan.space.left(plan.inside) and not slice_is_left(plan):
        plan.space, plan.inside = before
        return False
    plan.template, plan.template_by = template, names
    return True


def _forbidders(plan: Plan, template: CompiledTemplate) -> tuple[str, ...]:
    """Who forbids to tolerate a taint of its nodes; its labels alone would leave the pod Pending."""
    taints = [TolerationPattern(key=t.key, value=t.value, effect=t.effect) for t in template.template.taints]
    return tuple(sorted({who for pattern, who in plan.wishes.forbid if any(grants(pattern, taint) for taint in taints)}))


def with_template(plan: Plan, template: CompiledTemplate) -> Space:
    """The space in which every term also demands the template's labels."""
    said = tuple(
        placement.Said(key, "In", (value,), f"GPUNodeTemplate/{template.template.name}") for key, value in template.template.labels
    )
    terms = [replace(term, said=(*term.said, *said)) for term in plan.terms]
    return Space(placement.read(plan.snapshot, terms), plan.space.wanted)
