"""Defaults, axis by axis: nodeTemplate, mig, machine, capacity. Each is applied only if it leaves an offer.

On each axis the first that specifies something decides: the pod, its annotation, the namespace's own
policies, the cluster's. Within one scope the policies that match must agree; otherwise none of them is
applied and the conflict is remarked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from catalog.nearest import nearest
from kube.taints import TolerationPattern
from kube.tree import Path
from policies.fixes import write_or_leave_out
from policies.messages import At, Phrase, phrase
from policies.offers.constraints import Compiled, CompiledTemplate, Constraint, fields, meet, who
from policies.planning import feasibility
from policies.planning.affinity_terms import rows_as_said, rows_left
from policies.planning.feasibility import AuthorExpression, Cell, Space
from policies.planning.mig_slice import choose_slice, slice_is_left, with_conflict
from policies.planning.plan import Plan, left_out, neither_acts, speaks, spoken, unread
from policies.planning.prepared_places import known_rows
from policies.planning.requirement_words import describe_expression
from policies.planning.requirements import FORBID, grants
from policies.pods.annotations import TEMPLATE, is_long
from policies.verdict import Field, Violation, at_field


def choose(plan: Plan) -> Plan:
    """Return the plan with its defaults filled in, in order."""
    choosing = plan.demands.choosing
    if choosing and (authored := unread(plan)) is not None:
        plan = plan._replace(unread=authored)
    plan = choose_slice(_choose_template(plan))
    if plan.unread is None:
        plan = _machine_and_capacity(plan)
    else:
        plan = plan.saying("BERTH-204", _unread_words(plan, plan.unread), "node_affinity", choosing)
    spot = _who_named_spot(plan)
    return plan._replace(spot=spot) if spot else plan


def _unread_words(plan: Plan, authored: AuthorExpression) -> Phrase:
    """Return why a requirement of the author's is not understood: by its value if a platform has the label."""
    is_known = any(authored.key in table.values for table in plan.snapshot.tables.values())
    return phrase("unread value" if is_known else "unread", authored=describe_expression(authored))


# --- nodeTemplate: by the author's annotation, else by default. Once it is chosen, the offers of its own nodes exist ------


def _choose_template(plan: Plan) -> Plan:
    """Return the plan with the requested template, if its nodes leave something."""
    if plan.author.template is not None:
        return _by_annotation(plan, plan.author.template)
    if plan.unread is not None or speaks(plan, plan.snapshot.vocabulary.template):
        return plan
    if not plan.actor.chooses:
        return left_out(plan, "nodeTemplate", lambda c: c.policy.default.node_template)
    default = spoken(plan, "nodeTemplate", lambda c: c.policy.default.node_template)
    if default is None or default.value is None:
        return plan if default is None else neither_acts(plan, "nodeTemplate", default.policies)
    # where nodes are not known nothing is chosen: BERTH-208 reports it
    return _by_default(plan, default.value, default.policies) if plan.placeable else plan


def _by_default(plan: Plan, name: str, names: tuple[str, ...]) -> Plan:
    on = [(one, "spec.default.nodeTemplate") for one in names]
    own = [c for c in plan.policies if c.id in names and c.policy.namespace is not None]
    template = plan.snapshot.templates.get(name)
    if template is None or (own and name not in plan.settings.allowed_templates):
        found = phrase("not there" if template is None else "not allowed", name=name)
        return plan.saying("BERTH-204", found, "node_affinity", names, on=on)
    if not plan.space.possible_anywhere() and not with_template(plan, template).possible_anywhere():
        return plan  # a pod that fits nowhere gets no defaults
    taken = _take(plan, template, names)
    if taken is not None or not plan.space.left(plan.inside):
        return taken or plan
    forbidders = _forbidders(plan, template)
    if forbidders:
        return plan.saying("BERTH-204", phrase("forbidden", name=name, policies=forbidders), "node_affinity", names, on=on)
    return with_conflict(plan).saying("BERTH-204", phrase("template leaves nothing", name=name), "node_affinity", names, on=on)


def _by_annotation(plan: Plan, name: str) -> Plan:
    allowed = sorted(plan.settings.allowed_templates & plan.snapshot.templates.keys())
    if name not in allowed:
        known = name in plan.snapshot.templates
        near = None if known else nearest(name, allowed)
        advice = phrase("ask") if known else phrase("write", near=near) if near else phrase("remove annotation")
        more = phrase("allowed", templates=tuple(allowed)) if allowed else phrase("none allowed")
        return plan.denying(_annotation("not allowed" if known else "not there", name, advice, more, near=near))
    granters = tuple(c.id for c in plan.policies if name in c.policy.allow.node_templates)
    taken = _take(plan, plan.snapshot.templates[name], granters) if plan.placeable else plan
    if taken is not None or not plan.space.possible_anywhere():
        return taken or plan
    means = tuple(c.text for c in plan.snapshot.templates[name].constraints)
    more = phrase("means", name=name, constraints=means) if means else phrase("means any", name=name)
    forbidders = _forbidders(plan, plan.snapshot.templates[name])
    why, on = ("forbidden", at_field(FORBID, forbidders)) if forbidders else ("nothing left", fields(plan.constraints))
    return plan.denying(_annotation(why, name, phrase("choose another"), more, on))


def _annotation(why: str, name: str, advice: Phrase, more: Phrase, on: tuple[Field, ...] = (), near: str | None = None) -> Violation:
    path: Path = ("metadata", "annotations", TEMPLATE)
    found = phrase(why, path=At(path), name=name[:40])
    return Violation(
        code="BERTH-152",
        found=found,
        advice=advice,
        more=(more,),
        rule="node_affinity",
        path=path,
        fields=on,
        fixes=write_or_leave_out(path, near),
    )


def _take(plan: Plan, template: CompiledTemplate, names: tuple[str, ...]) -> Plan | None:
    """Return the plan with this template; None if nothing would be left, or if its nodes' taints are
    forbidden."""
    if _forbidders(plan, template):
        return None
    tried = plan._replace(space=with_template(plan, template), inside=plan.inside & template.rows)
    possible = plan.space.possible_anywhere() or tried.space.possible_anywhere()
    if possible and not tried.space.left(tried.inside) and not slice_is_left(tried):
        return None
    return tried.on_template(template, names)


def _forbidders(plan: Plan, template: CompiledTemplate) -> tuple[str, ...]:
    """Return the policies that forbid tolerating a taint of the template's nodes; with its labels alone
    the pod would stay Pending."""
    taints = [TolerationPattern(key=t.key, value=t.value, effect=t.effect) for t in template.template.taints]
    return tuple(sorted({who for pattern, who in plan.settings.forbid if any(grants(pattern, taint) for taint in taints)}))


def with_template(plan: Plan, template: CompiledTemplate) -> Space:
    """Return the space in which every term also requires the template's labels."""
    expressions = tuple(
        feasibility.AuthorExpression(key, "In", (value,), f"GPUNodeTemplate/{template.template.name}")
        for key, value in template.template.labels
    )
    terms = [replace(term, expressions=(*term.expressions, *expressions)) for term in plan.terms]
    return feasibility.read_cells(plan.snapshot, terms, plan.space.wanted)


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
        if _excludes_known_places(plan, tried):
            found = phrase("on no node", constraints=tuple(c.text for c in constraints))
            return plan.saying("BERTH-204", found, "node_affinity", default.policies, on=fields(constraints))
        return _clipped(tried if inside == sure else tried._replace(inside=inside), constraints, default.policies)
    if plan.slice is not None:  # with a slice, machine fields place the whole GPUs instead: nothing is lost
        return plan
    found = phrase("nothing left", constraints=tuple(c.text for c in constraints))
    return plan.saying("BERTH-204", found, "node_affinity", default.policies, on=fields(constraints))


def _excludes_known_places(plan: Plan, tried: Plan) -> bool:
    """Return whether the pod has a known place without the default that is tried and, with all places known, none with it."""
    if plan.snapshot.known_places is None or plan.template is not None:
        return False
    known = known_rows(plan.snapshot)
    return plan.space.left(plan.inside & known) and not tried.space.left(tried.inside & known)


def _can_be_had(plan: Plan) -> bool:
    """Return whether something of R is left in some term, by what can be expressed there: on AKS, spot
    alone of [spot, reserved]."""
    left = (cell for cell in plan.space.cells if cell.leaves(plan.inside))
    return any(not plan.writes or cell.leaves(plan.inside & rows_as_said(plan, cell)) for cell in left)


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
    return tuple(sorted(named)) if named and may_be_spot(plan) else ()


def may_be_spot(plan: Plan) -> bool:
    """Return whether spot is among what is left for the pod."""
    return any(_holds_spot(plan, cell) for cell in plan.space.cells)


def _holds_spot(plan: Plan, cell: Cell) -> bool:
    """Return whether spot is left in a term."""
    if not cell.leaves(plan.inside):
        return False
    spot = rows_left(plan, cell) & cell.table.by_capacity.get("spot", 0)
    return any(offered & spot for offered in cell.offered)
