"""Node affinity: a pod's required terms select only nodes whose offers lie inside R.

Reads   spec.nodeSelector, required and preferred node affinity, the plan's sets; for pinned pods the node's labels
Writes  expressions into every existing non-empty required term, or one new term; with several platforms one copy of
        each term per platform. A chosen template's labels and a slice's label stand in the same terms
Judges  on mutate: nothing of ``require`` is left, or the author's expression and the one to write share no value; on
        validate: what the stored terms still select outside R; for pinned pods a known node outside R
Never   edits a preferred term, an empty term or matchFields; never repeats what a term already implies
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from policies import chosen, known_node, lookalikes, refusal, slice_names
from policies.catalog import Resource
from policies.compiled import who
from policies.offers import AXES
from policies.placement import Cell, Said
from policies.plan import Plan
from policies.pod import TERMS, Raw
from policies.request import Request
from policies.sayable import sayable
from policies.terms import Alternative, Written, held, term_plans
from policies.verdict import Edit, Path, Violation

NAME = "node_affinity"


def mutate(request: Request, plan: Plan) -> Iterator[Edit]:
    """Term by term; copies are inserted behind their original, so later indices move."""
    if plan.actor.affinity != "write" or not plan.snapshot.placed or not plan.space.wanted:
        return
    plans = [term for term in term_plans(plan) if term.alternatives]
    if plans:
        chosen.say_place(plan)
    moved = 0
    for term in plans:
        if term.index is None:
            yield from _new_terms(term.alternatives)
            continue
        yield from _append(plan.pod.terms[term.index], term.index + moved, term.alternatives[0].added)
        for copy in term.alternatives[1:]:
            moved += 1
            yield from _copy(plan.pod.terms[term.index], term.index + moved, copy.added)


def _split(added: Sequence[Written]) -> tuple[list[Written], list[Written]]:
    """What makes a list or term that was not there, and what is appended to it: the label of a slice is always an edit of its own, by its
    own rule, so that who wrote it never depends on what else the pod has. Where there is nothing else, it makes the list."""
    first = [w for w in added if w.rule == NAME] or list(added)
    return first, [w for w in added if w not in first]


def _new_terms(alternatives: Sequence[Alternative]) -> Iterator[Edit]:
    split = [_split(a.added) for a in alternatives]
    terms = [{"matchExpressions": [_raw(w) for w in first]} for first, _ in split]
    yield _edit(TERMS[:4], {"nodeSelectorTerms": terms}, [w for first, _ in split for w in first])
    for index, (_, rest) in enumerate(split):
        yield from _appended(index, rest)


def _append(raw: Raw, index: int, added: Sequence[Written]) -> Iterator[Edit]:
    if raw.get("matchExpressions") is None and added:
        first, added = _split(added)
        yield _edit((*TERMS, index, "matchExpressions"), [_raw(w) for w in first], first)
    yield from _appended(index, added)


def _copy(raw: Raw, index: int, added: Sequence[Written]) -> Iterator[Edit]:
    first, rest = _split(added)
    value = {**raw, "matchExpressions": [*(raw.get("matchExpressions") or ()), *(_raw(w) for w in first)]}
    yield _edit((*TERMS, index), value, first)
    yield from _appended(index, rest)


def _appended(index: int, added: Sequence[Written]) -> Iterator[Edit]:
    for written in added:
        yield _edit((*TERMS, index, "matchExpressions", "-"), _raw(written), [written])


def _edit(path: Path, value: Any, added: Sequence[Written]) -> Edit:
    rules = {w.rule for w in added} or {NAME}
    return Edit(op="add", path=path, value=value, rule=rules.pop(), policies=_who(added))


def _raw(written: Written) -> Raw:
    expression = written.expression
    values = {"values": list(expression.values)} if expression.values else {}
    return {"key": expression.key, "operator": expression.operator, **values}


def _who(added: Sequence[Written]) -> tuple[str, ...]:
    return tuple(sorted({name for w in added for name in w.policies}))


# --- judging -----------------------------------------------------------------------------------------------------------


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """What the pod's own terms and the policies make impossible, or leave open."""
    yield from (v for v in plan.violations if v.rule == NAME)
    _remarks(plan)
    if plan.actor.affinity == "no":
        yield from known_node.check(plan)
        return
    if not plan.space.wanted:
        return
    if plan.constraints and plan.space.possible_anywhere() and not plan.space.left(plan.required):
        yield refusal.contradiction(plan)
    elif request.phase == "mutate":
        yield from _clashes(plan)
    elif plan.actor.affinity == "write" and plan.snapshot.placed:
        yield from _outside(plan)


def _clashes(plan: Plan) -> Iterator[Violation]:
    """Refused only where every term that is left names a value that the written expression on its key excludes."""
    if plan.actor.affinity != "write" or not plan.snapshot.placed or not any(cell.undecided for cell in plan.space.cells):
        return
    alternatives = [a for term in term_plans(plan) for a in term.alternatives]
    found = [(a.cell, *a.clash) for a in alternatives if a.clash is not None]
    if found and not any(a.alive for a in alternatives) and len(plan.terms) == len({a.cell.term.index for a in alternatives}):
        yield refusal.clash(plan, *found[0])


def _outside(plan: Plan) -> Iterator[Violation]:
    for cell in _unheld(plan):
        yield refusal.outside(plan, cell, plan.constraints[0].axis)
        return
    for cell in plan.space.cells:
        for axis in AXES:
            said = sayable(plan, cell, axis)
            if said.rendering.expressions and _selects_outside(plan, cell, said.rows):
                yield refusal.outside(plan, cell, axis)
                return


def _unheld(plan: Plan) -> Iterator[Cell]:
    """Terms that are possible on one platform alone, and don't say so: nodes of another would do, of which nothing was judged."""
    by_term: dict[int | None, list[Cell]] = {}
    for cell in plan.space.cells if plan.constraints and len(plan.snapshot.tables) > 1 else ():
        if plan.space.possible(cell):
            by_term.setdefault(cell.term.index, []).append(cell)
    yield from (cells[0] for cells in by_term.values() if len(cells) == 1 and held(plan, cells[0]))


def _selects_outside(plan: Plan, cell: Cell, inside: int) -> bool:
    return plan.space.possible(cell) and any(offered & ~inside for offered in plan.space.offered(cell))


# --- remarks -----------------------------------------------------------------------------------------------------------


MOST_UNKNOWN = 20
"""unknown values of one pod that are told, each with the nearest known one: an answer holds some twenty warnings"""


def _remarks(plan: Plan) -> None:
    undecided = ((cell, said) for cell in plan.space.cells for said in cell.undecided)
    for cell, said in islice(undecided, MOST_UNKNOWN):
        plan.remark("BERTH-201", refusal.unknown_value(plan, cell, said) + _held_by(plan, cell, said), NAME)
    for text in slice_names.lacking(plan):
        plan.remark("BERTH-217", text, NAME)
    for asked in plan.asked:
        name = asked.resource.name
        if lookalikes.is_unknown(asked.resource):
            plan.remark(lookalikes.UNKNOWN, lookalikes.unknown(name), NAME, [c.policy.id for c in plan.policies])
        elif plan.constraints and not slice_names.on_no_machine(plan, asked.resource) and not plan.snapshot.lists(name):
            plan.remark("BERTH-208", _without_nodes(plan, asked.resource), NAME, who(plan.constraints))
    if plan.constraints and any("" in claim.vendors for claim in plan.devices.claimed):
        text = "a resource claim can't be read: where the pod may run is not judged"
        plan.remark("BERTH-208", text, NAME, who(plan.constraints))
    if plan.space.wanted and plan.space.cells and not plan.space.possible_anywhere():
        plan.remark("BERTH-217", "no node type that is known here offers all that the pod asks for: it may stay Pending", NAME)
    _unwritten(plan)
    _after_boot(plan)
    if plan.pod.preferred and plan.constraints:
        refusal.preferred(plan)


def _held_by(plan: Plan, cell: Cell, said: Said) -> str:
    """Where a machine is new to everybody, by what its nodes will be known to be what is required."""
    platform = cell.table.platform
    if platform.labels.get(said.key) != "type" or plan.actor.affinity != "write" or not plan.snapshot.placed:
        return ""
    key = next((e.key for e in sayable(plan, cell, "machine").rendering.expressions if e.key in platform.after_boot), None)
    asked = refusal.joined([c for c in plan.constraints if c.axis == "machine"])
    return f". {asked} is held by {key}, which its feature discovery sets" if key is not None else ""


def _without_nodes(plan: Plan, resource: Resource) -> str:
    what = "judged as a device of an unknown model" if plan.snapshot.places(resource) else "not judged"
    return f"{resource.name} has no known nodes: where it may run is {what}"


def _unwritten(plan: Plan) -> None:
    """A queue's flavors place the pod: say what is not written. Only once something was chosen, on mutate."""
    constraints = [c for axis in AXES for c in plan.on_axis(axis)]
    if plan.actor.affinity == "judge" and plan.space.wanted and constraints:
        names, texts = who(constraints), " and ".join(c.text for c in constraints)
        plan.remark(
            "BERTH-215",
            f"it is {' and '.join(plan.actor.names)}: {texts} is judged and not written; the queue's flavors must carry it",
            NAME,
            names,
        )


def _after_boot(plan: Plan) -> None:
    for cell in plan.space.cells:
        platform = cell.table.platform
        new = any(platform.labels.get(said.key) == "type" for said in cell.undecided)  # of a machine that nobody knows it is the only word
        for said in cell.term.said:
            if (
                not new
                and said.key in platform.after_boot
                and said.operator in ("In", "Exists", "Gt", "Lt")
                and platform.creates_nodes
                and plan.snapshot.placed
            ):
                _say_after_boot(plan, said, platform.name, platform.machine_keys[0][0])


def _say_after_boot(plan: Plan, said: Said, platform: str, key: str) -> None:
    plan.remark(
        "BERTH-206",
        f"{said.where}: {said.key} is set only after a node has booted, so {platform} makes no new node for this pod; use {key}",
        NAME,
    )
