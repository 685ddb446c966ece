"""Where a pod can go: its terms and resource names, read against every table.

A cell is one required term on one platform's table; a pod without terms has one, made of its nodeSelector alone.
Terms are ORed: the pod can go where any cell leaves an offer for each resource name, judged one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policies.catalog import Expression
from policies.compiled import CompiledTemplate
from policies.offers import AXES, Axis, Table
from policies.pod import Pod, Raw
from policies.readings import is_product
from policies.snapshot import Snapshot

SELECTOR = "spec.nodeSelector"
POSITIVE = frozenset({"In", "Exists", "Gt", "Lt"})
"""operators that a node without the key never satisfies"""


@dataclass(frozen=True, slots=True)
class Said:
    """One thing the author said about nodes, with where: ``spec.nodeSelector``, ``nodeSelectorTerms[0].matchExpressions[1]``."""

    key: str
    operator: str
    values: tuple[str, ...]
    where: str
    alias: str = ""
    """the older key that the author wrote in its place (``Catalog.label_aliases``); nodes carry both"""

    @property
    def written(self) -> str:
        """The key as the author wrote it."""
        return self.alias or self.key

    def __str__(self) -> str:
        if self.where == SELECTOR:
            return f"{self.where} {self.written}={self.values[0]}"
        return f"{self.where} {self.written} {self.operator}{f' {listed(self.values)}' if self.values else ''}"


def listed(values: Sequence[str], most: int = 4) -> str:
    """``[a, b, c, d and 3 more]``."""
    rest = len(values) - most
    return f"[{', '.join(values[:most])}{f' and {rest} more' if rest > 0 else ''}]"


@dataclass(frozen=True, slots=True)
class Term:
    """A required term with the nodeSelector, which is ANDed to every term. ``index`` None: the pod has no terms."""

    index: int | None
    raw: Raw
    said: tuple[Said, ...]

    def demands(self, key: str, value: str) -> bool:
        """Whether only nodes with exactly this label can match."""
        return any(key in (s.key, s.alias) and s.operator == "In" and set(s.values) == {value} for s in self.said)

    def has(self, expression: Expression) -> bool:
        """Whether the author's term already holds this expression."""
        return any(
            s.key == expression.key and s.operator == expression.operator and set(s.values) == set(expression.values) for s in self.said
        )

    def implies(self, expression: Expression) -> bool:
        """Whether an expression of the author on the same key holds only where this one does, whatever nodes there are."""
        return any(_implies(said, expression) for said in self.said if said.key == expression.key)


def _implies(said: Said, expression: Expression) -> bool:
    mine, values = set(said.values), set(expression.values)
    match expression.operator:
        case "In":
            return said.operator == "In" and mine <= values
        case "NotIn":
            return {"In": mine.isdisjoint(values), "NotIn": values <= mine}.get(said.operator, said.operator == "DoesNotExist")
        case "Exists":
            return said.operator in POSITIVE
    return said.operator == "DoesNotExist"


def terms_of(pod: Pod, aliases: Mapping[str, str]) -> tuple[Term, ...]:
    """The terms that select something, older keys of labels read as the newer ones. An empty term selects nothing
    (kube-scheduler) and is left out; where all are empty, so is the result."""
    selector = tuple(Said(aliases.get(k, k), "In", (str(v),), SELECTOR, _older(k, aliases)) for k, v in pod.node_selector.items())
    if not pod.required:
        return (Term(None, {}, selector),)
    return tuple(
        Term(i, raw, (*selector, *_expressions(raw, i, aliases)))
        for i, raw in enumerate(pod.terms)
        if raw.get("matchExpressions") or raw.get("matchFields")
    )


def _expressions(raw: Raw, index: int, aliases: Mapping[str, str]) -> Iterator[Said]:
    for j, e in enumerate(raw.get("matchExpressions") or ()):
        key, values = str(e.get("key", "")), tuple(str(v) for v in e.get("values") or ())
        where = f"nodeSelectorTerms[{index}].matchExpressions[{j}]"
        yield Said(aliases.get(key, key), str(e.get("operator", "")), values, where, _older(key, aliases))


def _older(key: str, aliases: Mapping[str, str]) -> str:
    return key if key in aliases else ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One term on one table."""

    table: Table
    term: Term
    rows: int
    """rows that the term may select; expressions that are undecided select all"""
    undecided: tuple[Said, ...]
    positive: frozenset[Axis]
    """axes on which the term holds a positive expression on a key of the platform, or a template's labels"""
    renamed: tuple[Said, ...] = ()
    """what has other names of machines or products among its values (``readings``)"""

    @property
    def platform(self) -> str:
        return self.table.platform.name

    @property
    def of_twins(self) -> bool:
        """Whether it is for machines alone that another platform, not in force, calls so: they lack this platform's other labels."""
        return any(not is_product(self.table.platform, said.key) for said in self._renamed_whole())

    @property
    def cut(self) -> Said | None:
        """What names products that only nodes of slices have, of a strategy that is not in force."""
        return next((said for said in self._renamed_whole() if is_product(self.table.platform, said.key)), None)

    def _renamed_whole(self) -> Sequence[Said]:
        return [said for said in self.renamed if len(self.table.other_names_in(said.key, said.values)) == len(said.values)]


def read(snapshot: Snapshot, terms: Sequence[Term]) -> tuple[Cell, ...]:
    """Every cell; a term that names a key of another platform alone is no cell here."""
    return tuple(
        read_one(snapshot, table, term)
        for term in terms
        for table in snapshot.tables.values()
        if not names_other_platform(snapshot, table, term)
    )


def read_one(snapshot: Snapshot, table: Table, term: Term) -> Cell:
    """One term on one table."""
    rows, undecided, positive, renamed = table.all, [], set[Axis](), list[Said]()
    for said in term.said:
        selected, open_ = table.select(said.key, said.operator, said.values)
        rows &= selected
        if open_:
            undecided.append(said)
        elif said.operator in POSITIVE:
            positive.update(axes_of(snapshot, table, said.key))
        if said.operator == "In" and said.key in table.other_names and table.other_names_in(said.key, said.values):
            renamed.append(said)
            positive -= {"sharing"} if is_product(table.platform, said.key) else set()  # how it is shared, the key then does not say
    for template in snapshot.templates.values():
        if demands(term, template):
            rows &= template.rows[table.platform.name]
            positive.update(AXES)
        else:
            rows &= ~table.templated.get(template.template.name, 0)
    return Cell(table, term, rows, tuple(undecided), frozenset(positive), tuple(renamed))


def demands(term: Term, template: CompiledTemplate) -> bool:
    """Whether only nodes with all of the template's labels can match."""
    return all(term.demands(key, value) for key, value in template.template.labels)


def names_other_platform(snapshot: Snapshot, table: Table, term: Term) -> bool:
    """Whether the term can only match nodes of other platforms, by a positive expression on a key that only they have."""
    if len(snapshot.tables) == 1 or not term.said:
        return False
    return any(said.operator in POSITIVE and _foreign(snapshot, table, said.key) for said in term.said)


def _foreign(snapshot: Snapshot, table: Table, key: str) -> bool:
    return key not in table.values and any(key in other.values for other in snapshot.tables.values())


def axes_of(snapshot: Snapshot, table: Table, key: str) -> tuple[Axis, ...]:
    """The axes that a positive expression on this key speaks of, if the key is the platform's before a node exists."""
    platform = table.platform
    if key in platform.capacity_keys:
        return ("capacity",)
    by_label = key in platform.labels
    if by_label and platform.cloud is None:
        return ("machine", "sharing")
    scheme = snapshot.catalog.schemes[platform.sharing]
    shares = (platform.cloud is None or scheme.slice_key is not None) and any(key in v.labels for v in scheme.variants)
    return ("sharing",) if shares else ("machine",) if by_label else ()


@dataclass(frozen=True, slots=True)
class Space:
    """All cells of a pod and the resource names it asks for that any table offers."""

    cells: tuple[Cell, ...]
    wanted: Mapping[str, int | None]
    """resource name -> devices (None: can't be read)"""

    def offered(self, cell: Cell) -> list[int]:
        """Per resource name, the rows that the cell leaves."""
        rows, enough = cell.rows, cell.table.enough
        return [rows & enough(name, count) for name, count in self.wanted.items()]

    def possible(self, cell: Cell) -> bool:
        """Whether the cell leaves an offer for every name, policies aside."""
        return 0 not in self.offered(cell)

    def possible_anywhere(self) -> bool:
        """Whether any cell leaves an offer, policies aside."""
        return any(self.possible(cell) for cell in self.cells)

    def leaves(self, cell: Cell, rows: Mapping[str, int]) -> bool:
        """Whether something is left for every name inside ``rows``."""
        inside = rows[cell.table.platform.name]
        return 0 not in [offered & inside for offered in self.offered(cell)]

    def left(self, rows: Mapping[str, int]) -> bool:
        """Whether any cell leaves something inside ``rows``."""
        return any(self.leaves(cell, rows) for cell in self.cells)


def meet(rows: Mapping[str, int], *more: Mapping[str, int]) -> dict[str, int]:
    """AND, platform by platform."""
    out = dict(rows)
    for other in more:
        out = {platform: mask & other[platform] for platform, mask in out.items()}
    return out


def everything(snapshot: Snapshot) -> dict[str, int]:
    """All rows of every table."""
    return {name: table.all for name, table in snapshot.tables.items()}
