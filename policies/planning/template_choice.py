"""The choice of the GPUNodeTemplate of a pod: by the author's annotation, else by default. Once it is
chosen, the offers of its own nodes exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from catalog.nearest import nearest
from kube.taints import TolerationPattern
from kube.tree import Path
from policies.messages import At, Phrase, phrase
from policies.offers.constraints import CompiledTemplate, fields
from policies.planning import feasibility
from policies.planning.feasibility import Space
from policies.planning.merged_settings import FORBID, grants
from policies.planning.mig_slice import slice_is_left, with_conflict
from policies.planning.plan import Plan
from policies.planning.precedence import left_out, neither_acts, speaks, spoken
from policies.pods.annotations import TEMPLATE
from policies.verdict import Field, Violation, at_field


def choose_template(plan: Plan) -> Plan:
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
    own = [c for c in plan.policies if c.policy.id in names and c.policy.namespace is not None]
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
        advice = phrase("ask") if known else _guess(name, allowed)
        more = phrase("allowed", templates=tuple(allowed)) if allowed else phrase("none allowed")
        return plan.denying(_annotation("not allowed" if known else "not there", name, advice, more))
    taken = _take(plan, plan.snapshot.templates[name], _granters(plan, name)) if plan.placeable else plan
    if taken is not None or not plan.space.possible_anywhere():
        return taken or plan
    means = tuple(c.text for c in plan.snapshot.templates[name].constraints)
    more = phrase("means", name=name, constraints=means) if means else phrase("means any", name=name)
    forbidders = _forbidders(plan, plan.snapshot.templates[name])
    why, on = ("forbidden", at_field(FORBID, forbidders)) if forbidders else ("nothing left", fields(plan.constraints))
    return plan.denying(_annotation(why, name, phrase("choose another"), more, on))


def _annotation(why: str, name: str, advice: Phrase, more: Phrase, on: tuple[Field, ...] = ()) -> Violation:
    path: Path = ("metadata", "annotations", TEMPLATE)
    found = phrase(why, path=At(path), name=name[:40])
    policies = tuple(sorted({policy for policy, _ in on}))
    return Violation(
        code="BERTH-152", found=found, advice=advice, more=(more,), rule="node_affinity", policies=policies, path=path, fields=on
    )


def _guess(name: str, allowed: Sequence[str]) -> Phrase:
    return phrase("write", near=near) if (near := nearest(name, allowed)) else phrase("remove annotation")


def _granters(plan: Plan, name: str) -> tuple[str, ...]:
    return tuple(c.policy.id for c in plan.policies if name in c.policy.allow.node_templates)


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
