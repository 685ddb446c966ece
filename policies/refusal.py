"""The sentences of a refused placement: the smallest group of inputs that leave nothing, with values and paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from policies.applied import APPLIED
from policies.catalog import Expression
from policies.compiled import Constraint, who
from policies.nearest import nearest
from policies.offers import Axis
from policies.placement import Cell, Said, demands, listed, smallest
from policies.plan import Plan
from policies.render import natural
from policies.verdict import Violation

RULE = "node_affinity"


MOST_EXPLAINED = 8
"""terms on platforms, and names in them, of which the shortest explanation is taken: one term on each of seven platforms"""


def contradiction(plan: Plan) -> Violation:
    """Nothing of ``require`` is left: by the policies alone, or with what the pod says."""
    cell, inputs = min(islice(_groups(plan), MOST_EXPLAINED), key=lambda item: len(item[1]))
    demands = [i.constraint for i in inputs if i.constraint is not None]
    wishes = [i for i in inputs if i.constraint is None]
    policies = who(demands)
    if not wishes:
        named = " and ".join(_cut(f"{c.by[0].rpartition('/')[2]} ({c.text})", 98 // len(demands) - 5) for c in demands)
        fact = f"{named} {'leaves' if len(demands) == 1 else 'leave'} no GPU: this is a policy conflict, not your pod"
        return Violation(
            code="BERTH-122", fact=fact, fix="ask the platform team to mend it", detail=required(demands), rule=RULE, policies=policies
        )
    fact = f"{' and '.join(i.words for i in wishes)} {'is' if len(wishes) == 1 else 'are'} outside {joined(demands)}"
    detail = required(demands) + (" Every node affinity term fails." if len(plan.space.cells) > 1 else "")
    return Violation(code="BERTH-121", fact=fact, fix=_fix(plan, cell, wishes), detail=detail, rule=RULE, policies=policies)


class _Input(NamedTuple):
    """One set that went into the AND: a policy's constraint, or what the pod says."""

    rows: int
    text: str = ""
    constraint: Constraint | None = None
    said: Said | None = None
    counted: bool = False

    @property
    def words(self) -> str:
        return self.constraint.text if self.constraint is not None else self.text or str(self.said)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def joined(constraints: Sequence[Constraint]) -> str:
    return " and ".join(_cut(c.text, 48) for c in constraints)


def required(constraints: Sequence[Constraint]) -> str:
    """Every constraint in full, with the policy and the field it stands in."""
    return f"Required: {' and '.join(f'{c.by[0]} {c.field} ({c.text})' for c in constraints)}."


def _groups(plan: Plan) -> Iterator[tuple[Cell, list[_Input]]]:
    """For each resource name that has nothing left in a cell, the smallest group that explains it."""
    for cell in plan.space.cells:
        offered = plan.space.offered(cell)
        for (name, count), rows in zip(plan.space.wanted.items(), offered, strict=True):
            if 0 not in offered and not rows & plan.required[cell.platform]:
                inputs = list(_inputs(plan, cell, name, count))
                yield cell, [inputs[i] for i in smallest([one.rows for one in inputs], cell.table.all)]


def _inputs(plan: Plan, cell: Cell, name: str, count: int | None) -> Iterator[_Input]:
    """Policies first, so that a group of policies alone is found before one that blames the pod."""
    table, platform, others = cell.table, cell.platform, ~_other_templates(plan, cell)
    for constraint in plan.constraints:
        yield _Input(constraint.rows[platform] & others, constraint=constraint)
    of_name = table.of_resource(name)
    yield _Input(of_name, f"resource {name}")
    enough = table.enough(name, count)
    if enough != of_name:
        yield _Input(enough, f"{count} of {name} in one pod", counted=True)
    for said in cell.term.said:
        if said not in cell.undecided:
            yield _Input(table.select(said.key, said.operator, said.values)[0], said=said)
    for template in plan.snapshot.templates.values():
        if demands(cell.term, template):
            said = next(s for s in cell.term.said if s.key == template.template.labels[0][0])
            yield _Input(template.rows[platform], f"{said} (GPUNodeTemplate {template.template.name})", said=said)


def _other_templates(plan: Plan, cell: Cell) -> int:
    """Rows that exist only on the nodes of templates which this term does not name."""
    rows = 0
    for name, template in plan.snapshot.templates.items():
        rows |= 0 if demands(cell.term, template) else cell.table.templated.get(name, 0)
    return rows


def _fix(plan: Plan, cell: Cell, wishes: Sequence[_Input]) -> str:
    """What to type instead: a value that is allowed on the key, another resource name, fewer devices."""
    inside = plan.required[cell.platform]
    said = next((i.said for i in wishes if i.said is not None), None)
    if said is not None:
        fits = inside & _besides(plan, cell, said)
        # A time-sliced node fits any count: it is named only where no whole GPU is left to name.
        allowed = _values(cell, said.key, fits & cell.table.by_sharing.get("Exclusive", 0) or fits)
        return f"use {_one_of(allowed)}, or remove it" if allowed and said.operator == "In" else "remove it"
    if any(i.counted for i in wishes):
        return "ask for fewer per pod"
    names = [name for name, rows in sorted(cell.table.by_resource.items()) if rows & inside]
    whole = [name for name in names if name in plan.snapshot.catalog.whole.values()] or names
    same = [name for name in whole if (known := plan.snapshot.catalog.resource(name)) and known.vendor in plan.vendors] or whole
    return f"ask for {_one_of(same)}" if same else "ask the platform team which GPUs are allowed here"


def _besides(plan: Plan, cell: Cell, said: Said) -> int:
    """The rows that all else the pod says leaves: its resource names, their counts, its other labels."""
    rows = 0
    for name, count in plan.space.wanted.items():
        rows |= cell.table.enough(name, count)
    for other in cell.term.said:
        if other.key != said.key and other not in cell.undecided:
            rows &= cell.table.select(other.key, other.operator, other.values)[0]
    return rows


def _one_of(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"one of {', '.join(values[:5])}{' ...' if len(values) > 5 else ''}"


def _values(cell: Cell, key: str, inside: int) -> list[str]:
    """Known values of a key that lead inside what is required."""
    classes = cell.table.values.get(key, {})
    return sorted({v for possible, rows in classes.items() if rows & inside for v in possible if v and v not in ("?", "*")}, key=natural)


def clash(plan: Plan, cell: Cell, said: Said, expression: Expression) -> Violation:
    """An unknown value on the very key that R is written on, and no value in common."""
    asked = [c for c in plan.constraints if c.axis == "machine"] or list(plan.constraints)
    allowed = _values(cell, said.key, plan.required[cell.platform])
    return Violation(
        code="BERTH-125",
        fact=f"{said} is not known, and {joined(asked)} admits only known values",
        fix=f"use {_one_of(allowed)}" if allowed else "remove it",
        detail=f"{required(asked)} Berth would write {expression.key} {expression.operator} [{', '.join(expression.values)}]. "
        "A new GPU is added to the catalog with --catalog.",
        rule=RULE,
        policies=who(asked),
    )


def outside(plan: Plan, cell: Cell, axis: Axis) -> Violation:
    """The final pod still selects what the policies leave out."""
    constraints = [c for c in plan.constraints if c.axis == axis]
    where = "the pod has no required node affinity, so it" if cell.term.index is None else f"nodeSelectorTerms[{cell.term.index}]"
    applied = str(plan.pod.annotations.get(APPLIED, ""))
    ours = f'"{RULE}"' in applied or applied.startswith("{")  # counts alone: it may have been among them
    likely = (
        "another webhook removed the node affinity that Berth wrote"
        if ours
        else "the policies changed while the pod was being created, or Berth was not called before"
    )
    return Violation(
        code="BERTH-123",
        fact=f"{where} selects nodes outside {joined(constraints)}",
        fix="create the pod again (controllers do so by themselves)",
        detail=f"Likely: {likely}.",
        rule=RULE,
        policies=who(constraints),
    )


def unknown_value(cell: Cell, said: Said) -> str:
    """The value that no table knows, with the nearest that one does."""
    known = cell.table.known.get(said.key, frozenset())
    value = next(v for v in said.values if v not in known)
    near = nearest(value, known)
    hint = f'; did you mean "{near}"?' if near else f"; known: {listed(sorted(known), 8)}"
    return f'{said.where} {said.key}: "{value}" is no value that is known{hint}'


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
