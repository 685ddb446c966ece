"""Who speaks on an axis: the pod, then the namespace's own policies, then the cluster's. The first that does decides.

A pod that says anything about nodes that is not understood speaks on every axis: a place that a default would choose may be one that
its author's words rule out, and such a pod would wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from policies.compiled import Compiled
from policies.placement import POSITIVE, Cell, Said, Term, demands
from policies.plan import Plan
from policies.snapshot import Snapshot

T = TypeVar("T")


PLAIN = frozenset(
    {
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
    }
)
"""Labels that say nothing of what a node is for (k8s.io/api core/v1 well_known_labels.go; older keys are read as these): who names a zone
has not chosen a machine."""


def unread(plan: Plan) -> Said | None:
    """The first thing that the pod requires of nodes and that nobody here understands: a key that no table in force has, and that is no
    label of a node template all of whose labels are required; a value that no table knows. None: all of it is understood."""
    snapshot = plan.snapshot
    for term in plan.terms:
        for said in term.said:
            known = said.key in PLAIN or any(said.key in table.values for table in snapshot.tables.values())
            if not known and not _of_a_template(snapshot, term, said):
                return said
    return next((said for cell in plan.space.cells for said in cell.undecided if said.key not in PLAIN), None)


def _of_a_template(snapshot: Snapshot, term: Term, said: Said) -> bool:
    """Whether it is a label of a node template all of whose labels the term requires."""
    return any(
        demands(term, template) and any(key in (said.key, said.alias) for key, _ in template.template.labels)
        for template in snapshot.templates.values()
    )


def speaks(plan: Plan, keys: frozenset[str]) -> bool:
    """Whether the pod has a nodeSelector key or required expression on one of these keys."""
    return any(said.key in keys for term in plan.terms for said in term.said)


def speaks_of_sharing(plan: Plan) -> bool:
    """By a sharing key, or by a product label that only shared or sliced GPUs carry (``...-MIG-1g.10gb``)."""
    if speaks(plan, plan.snapshot.vocabulary.sharing) or any(cell.cut is not None for cell in plan.space.cells if cell.renamed):
        return True
    return any(_shared_alone(cell, name) for cell in plan.space.cells for name in plan.space.wanted if cell.table.platform.cloud is None)


def _shared_alone(cell: Cell, name: str) -> bool:
    """Whether the labels that the term names leave devices of this name, and none that is exclusive."""
    table = cell.table
    rows = table.by_resource.get(name, 0)
    for said in cell.term.said:
        if said.key in table.platform.labels and said.operator in POSITIVE:
            rows &= table.select(said.key, said.operator, said.values)[0]
    return bool(rows) and not rows & table.by_sharing.get("Exclusive", 0)


def spoken(
    plan: Plan, axis: str, value: Callable[[Compiled], T | None], key: Callable[[Compiled], object]
) -> tuple[T, tuple[str, ...]] | None:
    """The value of the first scope that has one, with who says it; None when none does or they disagree."""
    for scope in plan.demands.scopes:
        given = [c for c in scope if value(c) is not None]
        if not given:
            continue
        names = tuple(c.policy.id for c in given)
        if len({key(c) for c in given}) > 1:
            text = f"the defaults of {' and '.join(names)} differ on {axis}: neither acts; make them equal or let one match fewer pods"
            plan.remark("BERTH-202", text, "node_affinity", names)
            return None
        found = value(given[0])
        assert found is not None
        return found, names
    return None
