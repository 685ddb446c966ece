"""The reasons why a placement is denied: the smallest group of inputs that leave nothing, with values and
paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from catalog.nearest import nearest_slice
from kube.labels import Expression
from kube.pod import TERMS
from policies.fixes import Fix, choose_label, rename, request_fewer
from policies.messages import Phrase, cut_text, phrase
from policies.offers.constraints import Constraint, fields
from policies.offers.selectors import natural, values_among
from policies.offers.table import Axis
from policies.planning.feasibility import AuthorExpression, Cell, selects_template
from policies.planning.plan import Plan
from policies.planning.requirement_words import describe_expression, detail_constraints, explain_missing, list_constraints, place_of_label
from policies.rules.node_affinity import NAME
from policies.rules.node_affinity.remarks import on_no_machine
from policies.verdict import Violation

MOST_EXPLAINED = 8
"""Cells, and resource names in them, of which the shortest explanation is taken: one term on each of eight
platforms."""
MOST_NAMED = 50
"""The most characters of the values that a fix names: code, fact and fix are read at a glance."""
MOST_SHOWN = 5
"""The most values that a fix names."""
MOST_PAIRED = 40
"""The most distinct sets of which every pair is tried: 800, in a tenth of a millisecond. A pod under ten
policies has some thirty."""


def contradiction(plan: Plan) -> Violation:
    """Return the violation that nothing of ``require`` is left: by the policies alone, or together with
    the pod's own requirements."""
    cell, inputs = min(islice(_groups(plan), MOST_EXPLAINED), key=lambda item: len(item[1]))
    demands = [i.constraint for i in inputs if i.constraint is not None]
    own = [i for i in inputs if i.constraint is None]
    if not own:
        return _conflict(demands, "one" if len(demands) == 1 else "several")
    options = [(item, _options(plan, cell, item)) for item in own]
    return Violation(
        code="BERTH-121",
        found=_fact(own, demands),
        advice=_fix(plan, cell, options),
        more=(detail_constraints(demands), *([phrase("every term")] if len(plan.space.cells) > 1 else [])),
        rule=NAME,
        path=place_of_label(own[0].authored) if len(own) == 1 and own[0].authored else (),
        fields=fields(demands),
        fixes=tuple(chain.from_iterable(_fixes(*option) for option in options)),
    )


def _fact(own: Sequence[_Input], demands: Sequence[Constraint]) -> Phrase:
    """Return the conflict of the pod's own requirements with those of policies."""
    if len(own) == 1 and own[0].devices:
        return Phrase("too many", (*own[0].words.values, ("demands", list_constraints(demands))))
    return phrase("one" if len(own) == 1 else "several", own=tuple(i.words for i in own), demands=list_constraints(demands))


def divided(demands: Sequence[Constraint]) -> Violation:
    """Return the violation that the part of the cluster's ``require`` which node labels can express leaves
    nothing of the namespace's own."""
    return _conflict(demands, "divided")


def _conflict(demands: Sequence[Constraint], variant: str) -> Violation:
    named = tuple(cut_text(f"{c.by[0].rpartition('/')[2]} ({c.text})", 98 // len(demands) - 5) for c in demands)
    return Violation(
        code="BERTH-122",
        found=phrase(variant, demands=named),
        advice=phrase("fix the policies"),
        more=(detail_constraints(demands),),
        rule=NAME,
        fields=fields(demands),
    )


class _Input(NamedTuple):
    """One set of the intersection: a policy's constraint, or a requirement of the pod's own."""

    rows: int
    words: Phrase = phrase("none")
    """The text for a requirement of the pod's own."""
    constraint: Constraint | None = None
    authored: AuthorExpression | None = None
    name: str = ""
    """The resource that the pod requests."""
    devices: int = 0
    """How many of them, if no machine may have as many; 0 otherwise."""


def _groups(plan: Plan) -> Iterator[tuple[Cell, list[_Input]]]:
    """Yield, for each resource name that has nothing left in a cell, the smallest group that explains it."""
    for cell in plan.space.cells:
        for (name, count), rows in zip(plan.space.wanted.items(), cell.offered, strict=True):
            if cell.possible and not rows & plan.required:
                inputs = list(_inputs(plan, cell, name, count))
                yield cell, [inputs[i] for i in smallest([one.rows for one in inputs], cell.table.all)]


def _inputs(plan: Plan, cell: Cell, name: str, count: int | None) -> Iterator[_Input]:
    """Yield the inputs, policies first, so that a group of policies alone is found before one that blames
    the pod."""
    table, here = cell.table, cell.table.all & ~_other_templates(plan, cell)
    for constraint in plan.constraints:
        yield _Input(constraint.rows & here, constraint=constraint)
    of_name = table.of_resource(name)
    known = plan.snapshot.resource(name)
    yield _Input(of_name, phrase("nowhere" if known is not None and on_no_machine(plan, known) else "resource", name=name), name=name)
    enough = table.enough(name, count)
    if enough != of_name:
        yield _Input(enough, phrase("count", count=count, name=name), name=name, devices=count or 0)
    for authored in cell.term.expressions:
        if authored not in cell.undecided:
            yield _Input(
                table.select(authored.key, authored.operator, authored.values)[0],
                describe_expression(authored),
                authored=authored,
            )
    for template in plan.snapshot.templates.values():
        if selects_template(cell.term, template):
            authored = next(s for s in cell.term.expressions if template.template.labels[0][0] in (s.key, s.alias))
            words = phrase("of template", authored=describe_expression(authored), template=template.template.name)
            yield _Input(template.rows & table.all, words, authored=authored)


def _other_templates(plan: Plan, cell: Cell) -> int:
    """Return the rows that exist only on the nodes of templates which this term does not name."""
    rows = 0
    for name, template in plan.snapshot.templates.items():
        rows |= 0 if selects_template(cell.term, template) else cell.table.templated.get(name, 0)
    return rows


def _options(plan: Plan, cell: Cell, own: _Input) -> list[str]:
    """Return the values of a label, by the names that the author uses, or the resource names that are allowed; none for a count."""
    if own.authored is None:
        return [] if own.devices else _other_devices(plan, cell)
    rows = plan.required & _besides(plan, cell, own.authored)
    # A time-sliced node fits any count: it is named only where no whole GPU is left to name.
    rows = rows & cell.table.by_sharing.get("Exclusive", 0) or rows
    return _as_spelled(cell, own.authored, _values(cell, own.authored.key, rows))


def _fix(plan: Plan, cell: Cell, options: Sequence[tuple[_Input, list[str]]]) -> Phrase:
    """Return what to type instead: a value that is allowed on the key, another resource name, fewer devices."""
    for own, allowed in options:
        if own.authored is not None:
            return phrase("use or remove", allowed=_one_of(allowed)) if allowed and own.authored.operator == "In" else phrase("remove")
    if any(own.devices for own, _ in options):
        return phrase("fewer")
    if names := options[0][1]:
        return phrase("ask", name=_one_of(names))
    theirs = tuple(sorted(plan.vendors - {""}))
    is_any_allowed = any(rows & plan.required for rows in cell.table.by_resource.values())
    return phrase("ask platform", vendors=theirs) if theirs and is_any_allowed else phrase("ask which")


def _fixes(own: _Input, allowed: list[str]) -> tuple[Fix, ...]:
    """Return the fixes of one requirement of the pod's own: all values, where the advice names some."""
    if own.authored is not None:
        return choose_label(own.authored.written, allowed)
    return request_fewer(own.name, own.devices) if own.devices else rename(own.name, allowed)


def _other_devices(plan: Plan, cell: Cell) -> list[str]:
    """Return the resource names that are allowed: the nearest slice in place of one that does not exist anywhere, or whole devices of
    the pod's own vendors, never of another vendor."""
    names = [name for name, rows in sorted(cell.table.by_resource.items()) if rows & plan.required]
    for name in plan.space.wanted:
        known = plan.snapshot.resource(name)
        if known is not None and on_no_machine(plan, known) and (near := nearest_slice(name, (n for n in names if "/mig-" in n))):
            return [near]
    whole = [name for name in names if name in plan.snapshot.catalog.whole.values()] or names
    same = [name for name in whole if (known := plan.snapshot.catalog.resource(name)) and known.vendor in plan.vendors]
    return same if same or plan.vendors - {""} else whole


def _besides(plan: Plan, cell: Cell, authored: AuthorExpression) -> int:
    """Return the rows that the pod's other requirements leave: its resource names, their counts, its other
    labels."""
    rows = 0
    for name, count in plan.space.wanted.items():
        rows |= cell.table.enough(name, count)
    for other in cell.term.expressions:
        if other.key != authored.key and other not in cell.undecided:
            rows &= cell.table.select(other.key, other.operator, other.values)[0]
    return rows


def _one_of(values: Sequence[str]) -> str | Phrase:
    if len(values) == 1:
        return values[0]
    shown = next((values[:most] for most in range(MOST_SHOWN, 1, -1) if len(", ".join(values[:most])) <= MOST_NAMED), values[:1])
    return phrase("one of more" if len(values) > len(shown) else "one of", values=tuple(shown))


def _values(cell: Cell, key: str, inside: int) -> list[str]:
    """Return the known values of a key that lead inside what is required: the best examples first if there are too many to show."""
    classes = cell.table.values.get(key, {})
    found = {v for possible, rows in classes.items() if rows & inside for v in possible if v}
    values = sorted((v for v in found if v != "?" and not v.endswith("*")), key=natural)
    best = values_among(cell.table, key, inside, 0) if len(values) > MOST_SHOWN else ()
    return list(dict.fromkeys((*best, *values)))


def _as_spelled(cell: Cell, authored: AuthorExpression, values: list[str]) -> list[str]:
    """Return the values by the machine names that the author uses: ``ml.p5.48xlarge``."""
    names = cell.table.other_names.get(authored.key, {})
    if not cell.table.other_names_in(authored.key, authored.values):
        return values
    return sorted((other for other, value in names.items() if value in values), key=natural)


def clash(plan: Plan, cell: Cell, authored: AuthorExpression, expression: Expression) -> Violation:
    """Return the violation for an unknown value on the very key that R is written on, with no value in
    common."""
    asked = [c for c in plan.constraints if c.axis == "machine"] or list(plan.constraints)
    theirs = cell.table.of_vendors(tuple(plan.space.wanted))
    allowed = _values(cell, authored.key, plan.required & theirs)
    return Violation(
        code="BERTH-125",
        found=phrase("fact", authored=describe_expression(authored), demands=list_constraints(asked)),
        advice=phrase("use", allowed=_one_of(allowed)) if allowed else phrase("remove"),
        more=(detail_constraints(asked), phrase("written", key=expression.key, operator=expression.operator, values=expression.values)),
        rule=NAME,
        path=place_of_label(authored),
        fields=fields(asked),
        fixes=choose_label(authored.written, allowed),
    )


def outside(plan: Plan, cell: Cell, axis: Axis) -> Violation:
    """Return the violation that the final pod still selects what the policies exclude."""
    constraints = [c for c in plan.constraints if c.axis == axis]
    index, demands = cell.term.index, list_constraints(constraints)
    return Violation(
        code="BERTH-123",
        found=phrase("no affinity", demands=demands) if index is None else phrase("term", index=index, demands=demands),
        advice=phrase("fix"),
        more=(explain_missing(plan, NAME),),
        rule=NAME,
        path=TERMS if index is None else (*TERMS, index),
        fields=fields(constraints),
    )


def smallest(sets: Sequence[int], all_rows: int) -> tuple[int, ...]:
    """Return the indices of a small group of sets that have nothing in common; () if they have something.

    Groups of one and of two are tried first, up to ``MOST_PAIRED`` distinct sets; larger groups are found by
    dropping what is not needed.
    """
    if _common(sets, all_rows):
        return ()
    first = {rows: i for i, rows in reversed(list(enumerate(sets)))}
    if 0 in first:
        return (first[0],)
    distinct = sorted(first.values())
    for at, i in enumerate(distinct if len(distinct) <= MOST_PAIRED else ()):
        for j in distinct[at + 1 :]:
            if not sets[i] & sets[j]:
                return (i, j)
    return _needed(sets, all_rows)


def _needed(sets: Sequence[int], all_rows: int) -> tuple[int, ...]:
    """Return the sets that remain after dropping each set in turn if the others have nothing in common
    without it."""
    behind = [all_rows]
    for rows in reversed(sets):
        behind.append(behind[-1] & rows)
    kept, common = [], all_rows
    for i, rows in enumerate(sets):
        if common & behind[len(sets) - i - 1]:
            kept.append(i)
            common &= rows
    return tuple(kept)


def _common(sets: Iterable[int], all_rows: int) -> int:
    common = all_rows
    for rows in sets:
        common &= rows
    return common
