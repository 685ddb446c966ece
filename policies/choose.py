"""Defaults, axis by axis: nodeTemplate, mig, machine, capacity; each kept only if something is left.

The first that speaks on an axis decides: the pod, its annotation, the namespace's own policies, the cluster's. Within
one scope the policies that match must say the same, or neither acts and the conflict is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from policies import placement
from policies.catalog import MigProfile
from policies.nearest import nearest
from policies.placement import Space, meet
from policies.plan import Asked, Plan, Slice
from policies.pod import Container
from policies.policy import MigDefault, TolerationPattern
from policies.quantity import whole as whole_number
from policies.render import slice_by_label
from policies.snapshot import Compiled, CompiledTemplate, Constraint, who
from policies.verdict import Violation
from policies.wishes import SLICE, TEMPLATE, grants, is_long

T = TypeVar("T")


def choose(plan: Plan) -> None:
    """Fill in the defaults of the plan, in order."""
    _template(plan)
    _slice(plan)
    if not _speaks(plan, plan.snapshot.vocabulary.machine):
        _keep(plan, "machine", lambda c: c.machine or None, key=lambda c: tuple((x.field, *sorted(x.rows.items())) for x in c.machine))
    if not _speaks(plan, plan.snapshot.vocabulary.capacity):
        _keep(plan, "capacity", lambda c: _capacity(plan, c), key=lambda c: tuple((*sorted(x.rows.items()),) for x in _capacity(plan, c) or ()))
    plan.spot = _who_named_spot(plan)


# --- who speaks --------------------------------------------------------------------------------------------------------


def _speaks(plan: Plan, keys: frozenset[str]) -> bool:
    """Whether the pod has a nodeSelector key or required expression on one of these keys."""
    return any(said.key in keys for term in plan.terms for said in term.said)


def _speaks_of_sharing(plan: Plan) -> bool:
    """By a sharing key, or by a product label that only shared or sliced GPUs carry (``...-MIG-1g.10gb``)."""
    if _speaks(plan, plan.snapshot.vocabulary.sharing):
        return True
    return any(
        cell.table.platform.cloud is None and "sharing" in cell.positive and not cell.rows & cell.table.by_sharing.get("Exclusive", 0)
        for cell in plan.space.cells
    )


def _scopes(plan: Plan) -> Iterator[list[Compiled]]:
    """The namespace's own policies, then the cluster's."""
    yield [c for c in plan.policies if c.policy.namespace is not None]
    yield [c for c in plan.policies if c.policy.namespace is None]


def _spoken(plan: Plan, axis: str, value: Callable[[Compiled], T | None], key: Callable[[Compiled], object]) -> tuple[T, tuple[str, ...]] | None:
    """The value of the first scope that has one, with who says it; None when none does or they disagree."""
    for scope in _scopes(plan):
        given = [c for c in scope if value(c) is not None]
        if not given:
            continue
        names = tuple(c.policy.id for c in given)
        if len({key(c) for c in given}) > 1:
            plan.remark(
                "BERTH-202", f"the defaults of {' and '.join(names)} differ on {axis}: neither acts; make them equal or let one match fewer pods",
                "node_affinity", names,
            )  # fmt: skip
            return None
        found = value(given[0])
        assert found is not None
        return found, names
    return None


# --- machine and capacity ----------------------------------------------------------------------------------------------


def _capacity(plan: Plan, compiled: Compiled) -> tuple[Constraint, ...] | None:
    """longRuns beats capacity where the run is long."""
    long_runs = compiled.policy.default.long_runs
    if compiled.capacity_long is not None and long_runs is not None and is_long(plan.wishes.seconds, long_runs):
        return (compiled.capacity_long,)
    return None if compiled.capacity is None else (compiled.capacity,)


def _keep(
    plan: Plan, axis: str, value: Callable[[Compiled], tuple[Constraint, ...] | None], key: Callable[[Compiled], object]
) -> None:
    spoken = _spoken(plan, axis, value, key)
    if spoken is None or not plan.space.wanted:
        return
    constraints, names = spoken
    rows = meet(plan.inside, *(c.rows for c in constraints))
    if plan.space.left(plan.inside) and not plan.space.left(rows):
        wish = " and ".join(c.text for c in constraints)
        if plan.slice is None:  # beside a slice, machine fields say where a whole GPU goes instead: nothing is lost
            plan.remark("BERTH-204", f"default {wish} leaves nothing inside what is required and asked for: it does not act", "node_affinity", names)
        return
    _say_clipped(plan, constraints, names)
    plan.inside = rows
    plan.chosen.extend(replace(c, by=names) for c in constraints)


def _say_clipped(plan: Plan, constraints: Sequence[Constraint], names: Sequence[str]) -> None:
    for constraint in constraints:
        clipped = any(_loses(plan, name, constraint) for name in plan.inside)
        if constraint.narrows and clipped:
            plan.remark("BERTH-203", f"default {constraint.text} is clipped to what is required", "node_affinity", names)


def _loses(plan: Plan, platform: str, constraint: Constraint) -> bool:
    """Whether ``require`` takes away part of a default on its own axis."""
    rows = constraint.rows[platform]
    for other in plan.constraints:
        if other.axis == constraint.axis:
            rows &= other.rows[platform]
    return rows != constraint.rows[platform] & plan.snapshot.tables[platform].all


def _who_named_spot(plan: Plan) -> tuple[str, ...]:
    """Who named a capacity, by policy or as the pod itself, if what is left holds spot."""
    named = set(who(c for c in (*plan.constraints, *plan.chosen) if c.axis == "capacity"))
    if plan.template is not None and plan.template.template.capacity:
        named.update(plan.template_by)
    if _speaks(plan, plan.snapshot.vocabulary.capacity):
        named.update(plan.wishes.taints)
    spot = {name: table.by_capacity.get("spot", 0) for name, table in plan.snapshot.tables.items()}
    return tuple(sorted(named)) if named and plan.space.holds(plan.inside, spot) else ()


# --- nodeTemplate ------------------------------------------------------------------------------------------------------


def _template(plan: Plan) -> None:
    if plan.wishes.template is not None:
        _template_by_annotation(plan, plan.wishes.template)
        return
    spoken = None if _speaks(plan, plan.snapshot.vocabulary.template) else _spoken(plan, "nodeTemplate", lambda c: c.policy.default.node_template, lambda c: c.policy.default.node_template)
    if spoken is None:
        return
    name, names = spoken
    if not plan.space.wanted:  # without offers there is no placement: BERTH-208 says so
        return
    own = [c for c in plan.policies if c.policy.id in names and c.policy.namespace is not None]
    template = plan.snapshot.templates.get(name)
    if template is None or (own and name not in plan.wishes.allowed_templates):
        why = "is not defined" if template is None else "is in no ClusterGPUPolicy's allow.nodeTemplates for this namespace"
        plan.remark("BERTH-204", f"default nodeTemplate {name} {why}: it does not act", "node_affinity", names)
        return
    if not _take(plan, template, names) and plan.space.left(plan.inside):
        forbidders = _forbidders(plan, template)
        why = f"has a taint that {' and '.join(forbidders)} forbids" if forbidders else "leaves nothing inside what is required and asked for"
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
    elif plan.space.wanted and not _take(plan, plan.snapshot.templates[name], _granters(plan, name)) and plan.space.possible_anywhere():
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
    if possible and not plan.space.left(plan.inside) and not _slice_is_left(plan):
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
    said = tuple(placement.Said(key, "In", (value,), f"GPUNodeTemplate/{template.template.name}") for key, value in template.template.labels)
    terms = [replace(term, said=(*term.said, *said)) for term in plan.terms]
    return Space(placement.read(plan.snapshot, terms), plan.space.wanted)


# --- mig ---------------------------------------------------------------------------------------------------------------


def _slice(plan: Plan) -> None:
    spoken = _slice_wish(plan)
    if spoken is None:
        return
    wish, names, whole = spoken
    size = f"{wish.slice_gb}gb" if wish.slice_gb is not None else f"of at least {wish.usable_mib} MiB usable"
    several = _several(whole)
    if plan.actor.resources != "yes":
        text = f"MIG slice {size} skipped: it is {' and '.join(plan.actor.names)}, whose resources are not renamed"
        plan.remark("BERTH-210", text, "mig_resources", names)
    elif several is not None:
        text = f'MIG slice {size} skipped: container "{several.name}" asks for more than one whole GPU'
        plan.remark("BERTH-210", text, "mig_resources", names)
    else:
        _find_slice(plan, wish, size, whole.resource.name, names, plan.wishes.slice_gb is not None)


def _slice_wish(plan: Plan) -> tuple[MigDefault, tuple[str, ...], Asked] | None:
    """The slice wished for, by whom, and the whole GPU that it would stand for. None: no wish, or the pod speaks."""
    whole = [a for a in plan.asked if a.resource.kind == "gpu" and a.resource.vendor == "nvidia"]
    if len(whole) != 1 or _speaks_of_sharing(plan) or any(a.resource.kind in ("mig", "shared") for a in plan.asked):
        return None
    if plan.wishes.slice_gb is not None:
        return MigDefault(slice_gb=plan.wishes.slice_gb), tuple(c.policy.id for c in plan.policies), whole[0]
    spoken = _spoken(plan, "mig", lambda c: c.policy.default.mig, lambda c: c.policy.default.mig)
    return None if spoken is None else (*spoken, whole[0])


def _several(whole: Asked) -> Container | None:
    """A container that asks for more, or other, than one."""
    return next((c for c in whole.containers if whole_number(c.amount(whole.resource.name)) != 1), None)


def _slice_is_left(plan: Plan) -> bool:
    """Whether the slice that is wished for is there, where no whole GPU is: the nodes of a template may carry slices only."""
    spoken = _slice_wish(plan)
    if spoken is None or plan.actor.resources != "yes" or _several(spoken[2]) is not None:
        return False
    return any(True for _ in _options(plan, spoken[0], spoken[2].resource.name, plan.inside))


def _find_slice(plan: Plan, wish: MigDefault, size: str, old: str, names: tuple[str, ...], by_author: bool) -> None:
    options = sorted(_options(plan, wish, old, plan.inside), key=lambda o: (o[0].usable_mib or 0 if wish.usable_mib else 0, o[0].compute, o[0].name, o[1]))
    if options:
        profile, resource = options[0]
        plan.slice = Slice(profile=profile.name, old=old, resource=resource, policies=names)
        rows = {name: _sayable(plan, name, profile.name, old, resource) for name in plan.inside}
        plan.inside = meet(plan.inside, rows)
        plan.space = replace(plan.space, wanted={(resource if n == old else n): c for n, c in plan.space.wanted.items()})
    elif by_author and list(_options(plan, wish, old, placement.everything(plan.snapshot))):
        fact = f'metadata.annotations["{SLICE}"] asks for a slice of {size}, which the policies here do not admit'
        fix = "remove the annotation, or ask for another size"
        plan.violations.append(Violation(code="BERTH-153", fact=fact, fix=fix, rule="mig_resources", policies=who(plan.constraints)))
    else:
        where = ", ".join(plan.snapshot.tables) if plan.snapshot.placed else "any platform"
        plan.remark(
            "BERTH-210", f"MIG slice {size} skipped: no node on {where} inside what is required has one; a GPUNodeTemplate (gpus.migProfiles) "
            "or --catalog says where such nodes exist", "mig_resources", names,
        )  # fmt: skip


def _slice_rows(plan: Plan, platform: str, profile: str, resource: str) -> int:
    table = plan.snapshot.tables[platform]
    return table.where(o.profile == profile and o.resource == resource and o.sharing == "MIG" for o in table.offers)


def _sayable(plan: Plan, platform: str, profile: str, old: str, resource: str) -> int:
    """The slice's rows; none where it would be chosen by a label that the platform does not have."""
    rows = _slice_rows(plan, platform, profile, resource)
    table = plan.snapshot.tables[platform]
    return 0 if resource == old and slice_by_label(plan.snapshot.catalog, table, profile, rows) is None else rows


def _options(plan: Plan, wish: MigDefault, old: str, inside: dict[str, int]) -> Iterator[tuple[MigProfile, str]]:
    """(profile, resource name) of every slice that fits the wish and leaves something. By label the name stays."""
    for platform, table in plan.snapshot.tables.items():
        seen: set[tuple[str, str]] = set()
        for offer in table.offers:
            gpu = offer.host.gpu
            if gpu is None or offer.sharing != "MIG" or offer.profile is None or (offer.profile, offer.resource) in seen:
                continue
            seen.add((offer.profile, offer.resource))
            profile = next(p for p in gpu.mig if p.name == offer.profile)
            if _fits(profile, wish) and _is_left(plan, platform, profile.name, old, offer.resource, inside):
                yield profile, offer.resource


def _fits(profile: MigProfile, wish: MigDefault) -> bool:
    if profile.attribute is not None:
        return False
    if wish.usable_mib is not None:
        return profile.usable_mib is not None and profile.usable_mib >= wish.usable_mib
    return profile.memory_gb == wish.slice_gb


def _is_left(plan: Plan, platform: str, profile: str, old: str, resource: str, inside: dict[str, int]) -> bool:
    table = plan.snapshot.tables[platform]
    rows = {name: 0 for name in inside} | {platform: inside[platform] & _slice_rows(plan, platform, profile, resource)}
    if resource == old and slice_by_label(plan.snapshot.catalog, table, profile, rows[platform]) is None:
        return False
    space = replace(plan.space, wanted={(resource if n == old else n): c for n, c in plan.space.wanted.items()})
    return space.left(rows)
