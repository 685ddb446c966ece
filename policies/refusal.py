"""The sentences of a refused placement: the smallest group of inputs that leave nothing, with values and paths."""

from __future__ import annotations

from collections.abc import Iterator

from policies.catalog import Expression
from policies.nearest import nearest
from policies.offers import Axis
from policies.placement import Cell, Said, everything, meet, smallest
from policies.plan import Plan
from policies.snapshot import Constraint
from policies.verdict import Violation

RULE = "node_affinity"
_Input = tuple[str, int, Constraint | None, str]
"""(words, rows, the constraint if it is a policy's, what to type)"""


def contradiction(plan: Plan) -> Violation:
    """Nothing of ``require`` is left: by the policies alone, or with what the pod says."""
    groups = [(cell, group) for cell in plan.space.cells if plan.space.possible(cell) for group in _groups(plan, cell)]
    cell, inputs = min(groups, key=lambda item: len(item[1]))
    policies = tuple(sorted({i[2].policy for i in inputs if i[2] is not None}))
    demands = [f"{i[2].policy} {i[2].field} ({i[2].text})" for i in inputs if i[2] is not None]
    wishes = [i for i in inputs if i[2] is None]
    if not wishes:
        fact = f"{' and '.join(demands)} leave no GPU between them: this is a policy conflict, not your pod"
        return Violation(code="BERTH-122", fact=fact, fix="ask the platform team to change one of them", rule=RULE, policies=policies)
    fact = f"{' and '.join(i[0] for i in wishes)} {'has' if len(wishes) == 1 else 'have'} nothing in common with {_short(inputs)}"
    detail = f"Required: {' and '.join(demands)}." if len(plan.space.cells) == 1 else f"Required: {' and '.join(demands)}; every term fails."
    return Violation(code="BERTH-121", fact=fact, fix=wishes[0][3] or "change what the pod asks for", detail=detail + _choices(plan, cell), rule=RULE, policies=policies)


def _short(inputs: list[_Input]) -> str:
    return " and ".join(i[2].text for i in inputs if i[2] is not None)


def _groups(plan: Plan, cell: Cell) -> Iterator[list[_Input]]:
    """For each resource name that has nothing left in this cell, the smallest group that explains it."""
    for name, count in plan.space.wanted.items():
        inputs = list(_inputs(plan, cell, name, count))
        common = smallest(((words, rows) for words, rows, _, _ in inputs), cell.table.all)
        if common:
            yield [inputs[i] for i in common]


def _inputs(plan: Plan, cell: Cell, name: str, count: int | None) -> Iterator[_Input]:
    """Policies first, so that a group of policies alone is found before one that blames the pod."""
    table = cell.table
    for constraint in plan.constraints:
        yield constraint.text, constraint.rows[cell.platform] & ~_other_templates(plan, cell), constraint, ""
    of_name = table.by_resource.get(name, 0)
    yield f"resource {name}", of_name, None, "ask for a GPU that is allowed here"
    enough = table.enough(name, count)
    if enough != of_name:
        yield f"{count} of {name} in one pod", enough, None, "ask for fewer"
    for said in cell.term.said:
        if said not in cell.undecided:
            yield str(said), table.select(said.key, said.operator, said.values)[0], None, _fix(said)
    yield "the labels of the pod's node templates", cell.rows, None, ""


def _other_templates(plan: Plan, cell: Cell) -> int:
    rows = 0
    for templated in cell.table.templated.values():
        rows |= templated & ~cell.rows
    return rows


def _fix(said: Said) -> str:
    return f"remove or change {said.where}"


def _choices(plan: Plan, cell: Cell) -> str:
    """What the author may write instead on the key that failed, if the key is known."""
    rows = meet(everything(plan.snapshot), *(c.rows for c in plan.constraints))[cell.platform]
    for said in cell.term.said:
        allowed = sorted(
            {v for possible, of_value in cell.table.values.get(said.key, {}).items() if of_value & rows for v in possible if v and v not in ("?", "*")}
        )
        if allowed and said.operator == "In":
            return f" Allowed for {said.key}: {', '.join(allowed[:12])}."
    return ""


def clash(plan: Plan, said: Said, expression: Expression) -> Violation:
    """An unknown value on the very key that R is written on, and no value in common."""
    required = [c for c in plan.constraints if c.axis == "machine"] or list(plan.constraints)
    return Violation(
        code="BERTH-125",
        fact=f"{said} is not known, and the policies here require {expression.key} {expression.operator} [{', '.join(expression.values)}]",
        fix=_fix(said),
        detail=f"Required: {' and '.join(f'{c.policy} {c.field} ({c.text})' for c in required)}. A new GPU is added to the catalog with --catalog.",
        rule=RULE,
        policies=tuple(sorted({c.policy for c in required})),
    )


def outside(plan: Plan, cell: Cell, axis: Axis) -> Violation:
    """The final pod still selects what the policies leave out."""
    constraints = [c for c in plan.constraints if c.axis == axis]
    where = "spec.nodeSelector" if cell.term.index is None else f"required node affinity term {cell.term.index}"
    ours = any("berth.dev/applied" == key for key in plan.pod.annotations)
    likely = "another webhook removed the node affinity that Berth wrote" if ours else "the policies changed while the pod was being created, or Berth was not called before"
    return Violation(
        code="BERTH-123",
        fact=f"{where} selects nodes outside {' and '.join(c.text for c in constraints)}",
        fix="create the pod again (controllers do so by themselves)",
        detail=f"Likely: {likely}.",
        rule=RULE,
        policies=tuple(sorted({c.policy for c in constraints})),
    )


def unknown_value(cell: Cell, said: Said) -> str:
    """The value that no table knows, with the nearest that one does."""
    known = cell.table.known.get(said.key, frozenset())
    value = next(v for v in said.values if v not in known)
    near = nearest(value, known)
    hint = f'; did you mean "{near}"?' if near else f"; known: {', '.join(sorted(known)[:12])}"
    return f'{said.where}: {said.key} has no known value "{value}"{hint}'


def preferred(plan: Plan) -> None:
    """Warn where no preferred term is inside what is required. They are never edited."""
    for table in plan.snapshot.tables.values():
        for term in plan.pod.preferred:
            rows = table.all
            for e in (term.get("preference") or {}).get("matchExpressions") or ():
                rows &= table.select(str(e.get("key", "")), str(e.get("operator", "")), tuple(str(v) for v in e.get("values") or ()))[0]
            if rows & plan.required[table.platform.name]:
                return
    plan.remark("BERTH-214", "no preferred node affinity term is inside what is required here: none will count", RULE)


