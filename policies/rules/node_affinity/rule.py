"""Node affinity: a pod's required terms select only nodes whose offers lie inside R, the rows that policies
allow.

Reads   spec.nodeSelector, required and preferred node affinity, the plan's sets; for pinned pods the node's
        labels
Writes  expressions into every existing non-empty required term, or one new term; with several platforms one
        copy of each term per platform. The labels of a chosen template and of a slice go into the same terms
Checks  on mutate: nothing of ``require`` is left, or the author's expression and the one to write share no
        value; on validate: the stored terms still select rows outside R; for pinned pods: a known node is
        outside R
Never   edits a preferred term, an empty term or matchFields; never repeats what a term already implies
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kube.pod import TERMS
from kube.tree import Path, Raw
from policies.offers.table import AXES, Axis
from policies.planning.affinity_terms import PlatformTerm, WrittenExpression, held, sayable, term_plans
from policies.planning.feasibility import Cell
from policies.planning.plan import Plan
from policies.request import Request
from policies.rules.node_affinity import NAME, denials, pinned, remarks
from policies.verdict import Edit, Remark, Violation

INEXPRESSIBLE = "BERTH-205"


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Yield the edits term by term; a copy is inserted behind its original, so later indices move."""
    if not plan.writes or not plan.space.wanted:
        return
    found, of_terms = term_plans(plan)
    yield from of_terms
    plans = [term for term in found if term.alternatives]
    if plans:
        yield from remarks.ended_runs(request, plan)
        yield from remarks.chosen_nodes(plan, all_written=not any(remark.code == INEXPRESSIBLE for remark in of_terms))
    moved = 0
    for term in plans:
        if term.index is None:
            yield from _new_terms(term.alternatives)
            continue
        yield from _append(plan.pod.terms[term.index], term.index + moved, term.alternatives[0].added)
        for copy in term.alternatives[1:]:
            moved += 1
            yield from _copy(plan.pod.terms[term.index], term.index + moved, copy.added)


def _split(added: Sequence[WrittenExpression]) -> tuple[list[WrittenExpression], list[WrittenExpression]]:
    """Split expressions into those that create a missing list or term and those that are appended to it.

    The label of a slice is always an edit of its own under its own rule, so that the recorded rule never
    depends on what else is in the pod. If there is nothing else, it creates the list.
    """
    first = [w for w in added if w.rule == NAME] or list(added)
    return first, [w for w in added if w not in first]


def _new_terms(alternatives: Sequence[PlatformTerm]) -> Iterator[Edit]:
    split = [_split(a.added) for a in alternatives]
    terms = [{"matchExpressions": [_raw(w) for w in first]} for first, _ in split]
    yield _edit(TERMS[:4], {"nodeSelectorTerms": terms}, [w for first, _ in split for w in first])
    for index, (_, rest) in enumerate(split):
        yield from _appended(index, rest)


def _append(raw: Raw, index: int, added: Sequence[WrittenExpression]) -> Iterator[Edit]:
    if raw.get("matchExpressions") is None and added:
        first, added = _split(added)
        yield _edit((*TERMS, index, "matchExpressions"), [_raw(w) for w in first], first)
    yield from _appended(index, added)


def _copy(raw: Raw, index: int, added: Sequence[WrittenExpression]) -> Iterator[Edit]:
    first, rest = _split(added)
    value = {**raw, "matchExpressions": [*(raw.get("matchExpressions") or ()), *(_raw(w) for w in first)]}
    yield _edit((*TERMS, index), value, first)
    yield from _appended(index, rest)


def _appended(index: int, added: Sequence[WrittenExpression]) -> Iterator[Edit]:
    for written in added:
        yield _edit((*TERMS, index, "matchExpressions", "-"), _raw(written), [written])


def _edit(path: Path, value: Any, added: Sequence[WrittenExpression]) -> Edit:
    policies = added[0].policies if len(added) == 1 else tuple(sorted({name for w in added for name in w.policies}))
    return Edit(op="add", path=path, value=value, rule=added[0].rule if added else NAME, policies=policies)


def _raw(written: WrittenExpression) -> Raw:
    expression = written.expression
    values = {"values": list(expression.values)} if expression.values else {}
    return {"key": expression.key, "operator": expression.operator, **values}


# --- checking -----------------------------------------------------------------------------------------------


def check(request: Request, plan: Plan) -> Iterator[Violation | Remark]:
    """Yield violations for placement that the pod and the policies make impossible, and remarks on what they
    leave open."""
    yield from remarks.remark_placement(plan)
    if plan.actor.affinity == "no":
        yield from pinned.check(plan)
        return
    if not plan.space.wanted:
        return
    if plan.constraints and plan.space.possible_anywhere() and not plan.space.left(plan.required):
        yield denials.contradiction(plan)
    elif request.phase == "mutate":
        yield from _clashes(plan)
        yield from _divided(plan)
    elif plan.writes:
        yield from _outside(plan)


def _clashes(plan: Plan) -> Iterator[Violation | Remark]:
    """Yield a violation only if every remaining term names a value that the expression to write on its key
    excludes."""
    if not plan.writes or not any(cell.undecided for cell in plan.space.cells):
        return
    plans, of_terms = term_plans(plan)
    yield from of_terms
    alternatives = [a for term in plans for a in term.alternatives]
    found = [(a.cell, *a.clash) for a in alternatives if a.clash is not None]
    if found and not any(a.alive for a in alternatives) and len(plan.terms) == len({a.cell.term.index for a in alternatives}):
        yield denials.clash(plan, *found[0])


def _divided(plan: Plan) -> Iterator[Violation]:
    """Yield a violation if the parts of the requirements that labels can express exclude each other.

    Where labels can express only a part of what the cluster requires, that part is written whatever the
    namespace adds (``docs/laws.md``, law 5: "team policies only tighten"). If it leaves nothing of what the
    namespace requires, the pod could run nowhere.
    """
    demands = plan.demands
    axes = [axis for axis in AXES if demands.cluster[axis] and demands.own[axis]]
    if not axes or not plan.writes:
        return
    cells = [cell for cell in plan.space.cells if cell.possible]
    for parts in (*((axis,) for axis in axes), axes):
        if cells and not any(_told_apart(plan, cell, parts) for cell in cells):
            yield denials.divided([c for axis in parts for c in (*demands.cluster[axis], *demands.own[axis])])
            return


def _told_apart(plan: Plan, cell: Cell, axes: Sequence[Axis]) -> bool:
    """Return whether some rows of ``require`` remain after the expressions written for these axes."""
    rows = plan.required
    for axis in axes:
        rendering = sayable(plan, cell, axis).rendering
        rows &= rendering.rows if rendering.expressions else cell.table.all
    return cell.leaves(rows)


def _outside(plan: Plan) -> Iterator[Violation]:
    for cell in _unheld(plan):
        yield denials.outside(plan, cell, plan.constraints[0].axis)
        return
    for cell in plan.space.cells:
        for axis in AXES:
            expressed = sayable(plan, cell, axis)
            if expressed.rendering.expressions and cell.possible and not cell.lies_inside(expressed.rows):
                yield denials.outside(plan, cell, axis)
                return


def _unheld(plan: Plan) -> Iterator[Cell]:
    """Yield terms that are possible on one platform alone but do not select it.

    Nodes of another platform, for which nothing was checked, would match them too.
    """
    by_term: dict[int | None, list[Cell]] = {}
    for cell in plan.space.cells if plan.constraints and len(plan.snapshot.tables) > 1 else ():
        if cell.possible:
            by_term.setdefault(cell.term.index, []).append(cell)
    yield from (cells[0] for cells in by_term.values() if len(cells) == 1 and held(plan, cells[0]))
