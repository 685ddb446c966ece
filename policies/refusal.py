"""The sentences of a refused placement: the smallest group of inputs that leave nothing, with values and paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from policies.applied import APPLIED
from policies.catalog import Expression
from policies.compiled import Constraint, who
from policies.nearest import nearest, of_model
from policies.offers import Axis
from policies.placement import Cell, Said, demands, listed
from policies.plan import Plan
from policies.render import natural
from policies.slice_names import nearest_slice, on_no_machine
from policies.smallest_group import smallest
from policies.verdict import Violation
from policies.wording import cut

RULE = "node_affinity"


MOST_EXPLAINED = 8
"""terms on platforms, and names in them, of which the shortest explanation is taken: one term on each of eight platforms"""
MOST_NAMED = 50
"""characters of the values that a fix names: code, fact and fix are read at a glance"""
_NOWHERE = " (a slice that no machine here has)"


def contradiction(plan: Plan) -> Violation:
    """Nothing of ``require`` is left: by the policies alone, or with what the pod says."""
    cell, inputs = min(islice(_groups(plan), MOST_EXPLAINED), key=lambda item: len(item[1]))
    demands = [i.constraint for i in inputs if i.constraint is not None]
    wishes = [i for i in inputs if i.constraint is None]
    policies = who(demands)
    if not wishes:
        named = " and ".join(cut(f"{c.by[0].rpartition('/')[2]} ({c.text})", 98 // len(demands) - 5) for c in demands)
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


def joined(constraints: Sequence[Constraint]) -> str:
    return " and ".join(cut(c.text, 48) for c in constraints)


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
    known = plan.snapshot.resource(name)
    yield _Input(of_name, f"resource {name}{_NOWHERE if known is not None and on_no_machine(plan, known) else ''}")
    enough = table.enough(name, count)
    if enough != of_name:
        yield _Input(enough, f"{count} of {name} in one pod", counted=True)
    for said in cell.term.said:
        if said not in cell.undecided:
            yield _Input(table.select(said.key, said.operator, said.values)[0], said=said)
    for template in plan.snapshot.templates.values():
        if demands(cell.term, template):
            said = next(s for s in cell.term.said if template.template.labels[0][0] in (s.key, s.alias))
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
        allowed = _as_spelled(cell, said, _values(cell, said.key, fits & cell.table.by_sharing.get("Exclusive", 0) or fits))
        return f"use {_one_of(allowed)}, or remove it" if allowed and said.operator == "In" else "remove it"
    if any(i.counted for i in wishes):
        return "ask for fewer per pod"
    return _other_devices(plan, cell, inside)


def _other_devices(plan: Plan, cell: Cell, inside: int) -> str:
    """By resource name: the nearest slice in place of one that is nowhere, whole devices of the pod's own vendors. Never another's."""
    names = [name for name, rows in sorted(cell.table.by_resource.items()) if rows & inside]
    for name in plan.space.wanted:
        known = plan.snapshot.resource(name)
        if known is not None and on_no_machine(plan, known) and (near := nearest_slice(name, (n for n in names if "/mig-" in n))):
            return f"ask for {near}"
    whole = [name for name in names if name in plan.snapshot.catalog.whole.values()] or names
    same = [name for name in whole if (known := plan.snapshot.catalog.resource(name)) and known.vendor in plan.vendors]
    if same or not whole:
        return f"ask for {_one_of(same)}" if same else "ask the platform team which GPUs are allowed here"
    theirs = " or ".join(sorted(plan.vendors - {""}))
    return f"ask the platform team: nothing of {theirs} is allowed here" if theirs else f"ask for {_one_of(whole)}"


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
    if len(values) == 1:
        return values[0]
    shown = next((values[:most] for most in (5, 4, 3, 2) if len(", ".join(values[:most])) <= MOST_NAMED), values[:1])
    return f"one of {', '.join(shown)}{' ...' if len(values) > len(shown) else ''}"


def _values(cell: Cell, key: str, inside: int) -> list[str]:
    """Known values of a key that lead inside what is required."""
    classes = cell.table.values.get(key, {})
    found = {v for possible, rows in classes.items() if rows & inside for v in possible if v}
    return sorted((v for v in found if v != "?" and not v.endswith("*")), key=natural)


def _as_spelled(cell: Cell, said: Said, values: list[str]) -> list[str]:
    """By the names that the author has for machines: ``ml.p5.48xlarge``."""
    names = cell.table.other_names.get(said.key, {})
    if not cell.table.other_names_in(said.key, said.values):
        return values
    return sorted((other for other, value in names.items() if value in values), key=natural)


def clash(plan: Plan, cell: Cell, said: Said, expression: Expression) -> Violation:
    """An unknown value on the very key that R is written on, and no value in common."""
    asked = [c for c in plan.constraints if c.axis == "machine"] or list(plan.constraints)
    theirs = cell.table.of_vendors(tuple(plan.space.wanted))
    allowed = _values(cell, said.key, plan.required[cell.platform] & theirs)
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
    return Violation(
        code="BERTH-123",
        fact=f"{where} selects nodes outside {joined(constraints)}",
        fix="create the pod again (controllers do so by themselves)",
        detail=likely(plan, RULE, "another webhook removed the node affinity that Berth wrote"),
        rule=RULE,
        policies=who(constraints),
    )


def likely(plan: Plan, rule: str, undone: str) -> str:
    """Why the final pod lacks what a rule writes: ``undone``, by somebody else, where Berth's record says that it was written."""
    applied = str(plan.pod.annotations.get(APPLIED, ""))
    written = f'"{rule}"' in applied or applied.startswith("{")  # counts alone: it may have been among them
    return f"Likely: {undone if written else 'the policies changed while the pod was being created, or Berth was not called before'}."


MOST_KNOWN = 20
"""values of a key that are few enough to show some of where none is near: names of GPUs, and not the hundreds of types and products"""


def unknown_value(plan: Plan, cell: Cell, said: Said) -> str:
    """The value that no table knows, with the nearest that one does: of the vendors asked for, and of no other model."""
    value = next(v for v in said.values if not cell.table.knows(said.key, v))
    cloud = next((m.cloud for m in plan.snapshot.catalog.machines if m.type is not None and m.type == value), None)
    if cloud is not None and cloud not in {table.platform.cloud for table in plan.snapshot.tables.values()}:
        return f'{said.where} {said.written}: "{value}" is a machine of {cloud}, which no node of {" or ".join(plan.snapshot.tables)} is'
    known, codes = _offered_values(plan, said.key), plan.snapshot.catalog.codes
    near = nearest(value, known, codes)
    shown = of_model(value, known, codes) or sorted(known if len(known) <= MOST_KNOWN else ())
    rest = f"known: {listed(shown, 8)}" if shown else "a new one is added with --catalog"
    hint = f'did you mean "{near}"?' if near else rest
    return f'{said.where} {said.written}: "{value}" is no value that is known; {hint}'


def _offered_values(plan: Plan, key: str) -> frozenset[str]:
    """What nodes with the pod's vendors' devices may have for a label, whole and unshared."""
    schemes = plan.snapshot.catalog.schemes.values()
    suffixes = {v.suffix.partition("{profile}")[0] for scheme in schemes for v in scheme.variants} - {""}
    found: set[str] = set()
    for table in plan.snapshot.tables.values():
        rows = table.of_vendors(tuple(plan.space.wanted)) or table.all
        found.update(v for possible, of_value in table.values.get(key, {}).items() if of_value & rows for v in possible if v)
    return frozenset(v for v in found if v != "?" and not v.endswith("*") and not any(suffix in v for suffix in suffixes))


def preferred(plan: Plan) -> None:
    """Warn where no preferred term is inside what is required. They are never edited."""
    for table in plan.snapshot.tables.values():
        for term in plan.pod.preferred:
            rows = table.all
            for e in (term.get("preference") or {}).get("matchExpressions") or ():
                key = str(e.get("key", ""))
                key = plan.snapshot.catalog.label_aliases.get(key, key)
                rows &= table.select(key, str(e.get("operator", "")), tuple(str(v) for v in e.get("values") or ()))[0]
            if rows & plan.required[table.platform.name]:
                return
    plan.remark("BERTH-214", "no preferred node affinity term is inside what is required here: none will count", RULE)
