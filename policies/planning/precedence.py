"""The precedence of defaults on an axis: the pod, then the namespace's own policies, then the cluster's. The
first that specifies something decides.

A pod with any requirement on nodes that is not understood counts as specifying every axis: nodes that a
default would choose may be ones that its author's requirement rules out, and such a pod would stay Pending
for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from kube.labels import ARCH, HOSTNAME, OS, POSITIVE, REGION, ZONE
from policies.messages import phrase
from policies.offers.constraints import Compiled
from policies.offers.merging import NamedValue
from policies.planning.feasibility import AuthorExpression, Cell, RequiredTerm, demands
from policies.planning.plan import Plan
from policies.pods.annotations import is_long
from policies.state.snapshot import Snapshot

T = TypeVar("T")


PLAIN = frozenset({ZONE, REGION, OS, ARCH, HOSTNAME})
"""Labels that are unrelated to a node's purpose (older keys are read as these): an author who names a zone has not chosen a machine."""


def unread(plan: Plan) -> AuthorExpression | None:
    """Return the first requirement on nodes that is not understood: a key that no table in force has and
    that is not a label of a node template all of whose labels are required, or a value that no table
    knows. None: everything is understood."""
    snapshot = plan.snapshot
    for term in plan.terms:
        for authored in term.expressions:
            known = authored.key in PLAIN or any(authored.key in table.values for table in snapshot.tables.values())
            if not known and not _of_a_template(snapshot, term, authored):
                return authored
    return next((authored for cell in plan.space.cells for authored in cell.undecided if authored.key not in PLAIN), None)


def _of_a_template(snapshot: Snapshot, term: RequiredTerm, authored: AuthorExpression) -> bool:
    """Return whether the key is a label of a node template all of whose labels the term requires."""
    return any(
        demands(term, template) and any(key in (authored.key, authored.alias) for key, _ in template.template.labels)
        for template in snapshot.templates.values()
    )


def speaks(plan: Plan, keys: frozenset[str]) -> bool:
    """Return whether the pod has a nodeSelector key or required expression on one of these keys."""
    return not keys.isdisjoint(plan.keys)


def speaks_of_sharing(plan: Plan) -> bool:
    """Return whether the pod specifies sharing: by a sharing key, or by a product label that only shared
    or sliced GPUs carry (``...-MIG-1g.10gb``)."""
    if speaks(plan, plan.snapshot.vocabulary.sharing) or any(cell.cut is not None for cell in plan.space.cells if cell.renamed):
        return True
    return any(_shared_alone(cell, name) for cell in plan.space.cells for name in plan.space.wanted if cell.table.platform.cloud is None)


def _shared_alone(cell: Cell, name: str) -> bool:
    """Return whether the labels that the term names leave devices of this name, and none that is
    exclusive."""
    table = cell.table
    rows = table.by_resource.get(name, 0)
    for authored in cell.term.expressions:
        if authored.key in table.platform.labels and authored.operator in POSITIVE:
            rows &= table.select(authored.key, authored.operator, authored.values)[0]
    return bool(rows) and not rows & table.by_sharing.get("Exclusive", 0)


def spoken(
    plan: Plan,
    axis: str,
    value: Callable[[Compiled], T | None],
    alike: Callable[[T], object] | None = None,
    named: Callable[[T, tuple[str, ...]], T] | None = None,
) -> NamedValue[T] | None:
    """Return the default of the first scope that has one; None if no policy has a default on this axis.
    ``alike``: the value to compare by; ``named``: the value with the policies that specify it. Computed
    once per set of policies: of the pod it depends only on how long it runs."""
    demands = plan.demands
    key = (axis, *[is_long(plan.author.seconds, runs) for runs in demands.default_runs])
    if key not in demands.spoken:
        by_scope = ([(c.policy.id, found) for c in scope if (found := value(c)) is not None] for scope in demands.scopes)
        given = next(filter(None, by_scope), None)
        demands.spoken[key] = None if given is None else _together(given, alike, named)
    known: NamedValue[T] | None = demands.spoken[key]
    return known


def _together(
    given: Sequence[tuple[str, T]], alike: Callable[[T], object] | None, named: Callable[[T, tuple[str, ...]], T] | None
) -> NamedValue[T]:
    names, first = tuple(name for name, _ in given), given[0][1]
    if len({value if alike is None else alike(value) for _, value in given}) > 1:
        return NamedValue(None, names)
    return NamedValue(first if named is None else named(first, names), names)


def left_out(plan: Plan, axis: str, value: Callable[[Compiled], object | None]) -> Plan:
    """Return the plan of an actor for whom no default chooses nodes, with a remark if one would have."""
    names = [c.policy.id for scope in plan.demands.scopes for c in scope if value(c) is not None]
    if not names:
        return plan
    found = phrase("actor", axis=axis, actor=plan.actor.names)
    return plan.saying("BERTH-204", found, "node_affinity", names, on=[(name, f"spec.default.{axis}") for name in names])


def neither_acts(plan: Plan, axis: str, names: Sequence[str]) -> Plan:
    """Return the plan with a remark that policies of one scope differ on an axis, so that none of them is
    applied."""
    differing: NamedValue[object] = NamedValue(None, tuple(names))
    return plan._replace(remarks=(*plan.remarks, differing.differs(axis, "node_affinity")))
