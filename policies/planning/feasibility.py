"""Compute where a pod can go. A cell is one required term on one platform's table; a pod without terms has a
single one, its nodeSelector. Terms are ORed: the pod can go where any cell leaves an offer for each resource
name, each checked by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from catalog.nearest import list_known
from kube.labels import POSITIVE, Expression
from kube.pod import Pod
from kube.tree import Raw
from policies.offers.constraints import CompiledTemplate
from policies.offers.label_readings import is_product
from policies.offers.table import AXES, Axis, Table
from policies.state.snapshot import Snapshot

SELECTOR = "spec.nodeSelector"
"""The place of an expression that the nodeSelector holds."""


class AuthorExpression(NamedTuple):
    """One expression on node labels. ``where``: its place in the pod, as messages name it."""

    key: str
    operator: str
    values: tuple[str, ...]
    where: str
    alias: str = ""
    """The older key that the author wrote (``Catalog.label_aliases``); nodes have both labels."""

    @property
    def written(self) -> str:
        """The key as the author wrote it."""
        return self.alias or self.key

    def __str__(self) -> str:
        if self.where == SELECTOR:
            return f"{self.where} {self.written}={self.values[0]}"
        return f"{self.where} {self.written} {self.operator}{f' {list_bracketed(self.values)}' if self.values else ''}"


def list_bracketed(values: Sequence[str], most: int = 4) -> str:
    """Return ``[a, b, c, d and 3 more]``."""
    return f"[{list_known(values, most)}]"


@dataclass(frozen=True, slots=True)
class RequiredTerm:
    """A required term with the nodeSelector, which applies to all. ``index`` is None without terms."""

    index: int | None
    raw: Raw
    expressions: tuple[AuthorExpression, ...]

    def has(self, expression: Expression) -> bool:
        """Return whether the term has this expression, by the key as written or its newer name."""
        key, operator = expression.key, expression.operator
        for said in self.expressions:
            if (said.key == key or said.alias == key) and said.operator == operator and set(said.values) == set(expression.values):
                return True
        return False

    def implies(self, expression: Expression) -> bool:
        """Return whether an expression on the same key implies this one on any node."""
        return any(Expression(*authored[:3]).implies(expression) for authored in self.expressions if authored.key == expression.key)


def terms_of(pod: Pod, aliases: Mapping[str, str]) -> tuple[RequiredTerm, ...]:
    """Return the terms that select anything, with newer label keys for older ones. An empty term selects
    nothing (kube-scheduler) and is left out; the result may be empty."""
    labels = pod.node_selector.items()
    selector = tuple(AuthorExpression(aliases.get(k, k), "In", (str(v),), SELECTOR, k if k in aliases else "") for k, v in labels)
    if not pod.required:
        return (RequiredTerm(None, {}, selector),)
    return tuple(
        RequiredTerm(i, raw, (*selector, *_expressions(raw, i, aliases)))
        for i, raw in enumerate(pod.terms)
        if raw.get("matchExpressions") or raw.get("matchFields")
    )


def _expressions(raw: Raw, index: int, aliases: Mapping[str, str]) -> Iterator[AuthorExpression]:
    for j, e in enumerate(raw.get("matchExpressions") or ()):
        key, values = str(e.get("key", "")), tuple(str(v) for v in e.get("values") or ())
        where = f"nodeSelectorTerms[{index}].matchExpressions[{j}]"
        yield AuthorExpression(aliases.get(key, key), str(e.get("operator", "")), values, where, key if key in aliases else "")


class Cell(NamedTuple):
    """One term on one table."""

    table: Table
    term: RequiredTerm
    rows: int
    """The rows that the term may select; undecided expressions select all."""
    undecided: tuple[AuthorExpression, ...]
    positive: frozenset[Axis]
    """Axes with a positive expression of the term on a key of the platform, or with a template's labels."""
    renamed: tuple[AuthorExpression, ...] = ()
    """Expressions with other names of machines or products (``label_readings``)."""
    offered: tuple[int, ...] = ()
    """The rows that the term leaves for each resource name that the pod asks for."""
    possible: bool = True
    """True if the term leaves an offer for every name, policies aside."""
    universe: int = 0
    """The rows of the vendors whose devices the pod asks for, whatever the term."""

    def leaves(self, inside: int) -> bool:
        """Return whether something is left for every name within these rows."""
        return 0 not in [offered & inside for offered in self.offered]

    def lies_inside(self, rows: int) -> bool:
        """Return whether everything that is left for any name is within these rows."""
        return not any(offered & ~rows for offered in self.offered)

    @property
    def platform(self) -> str:
        return self.table.platform.name

    @property
    def of_twins(self) -> bool:
        """True if an expression names machines by names of another platform alone, which lack this platform's other labels."""
        return any(not is_product(self.table.platform, authored.key) for authored in self._renamed_whole())

    @property
    def cut(self) -> AuthorExpression | None:
        """The expression with products of sliced nodes alone, of a MIG strategy that is not in force."""
        return next((authored for authored in self._renamed_whole() if is_product(self.table.platform, authored.key)), None)

    def _renamed_whole(self) -> Sequence[AuthorExpression]:
        return [e for e in self.renamed if len(self.table.other_names_in(e.key, e.values)) == len(e.values)]


Wanted = Mapping[str, int | None]
"""Resource name -> number of devices; None if it cannot be read."""


def read_cells(snapshot: Snapshot, terms: Sequence[RequiredTerm], wanted: Wanted) -> Space:
    """Return all cells: each term on each table, unless only nodes of other platforms can match it."""
    return Space(
        tuple(
            read_one(snapshot, table, term, wanted)
            for term in terms
            for table in snapshot.tables.values()
            if not names_other_platform(snapshot, table, term)
        ),
        wanted,
    )


def read_one(snapshot: Snapshot, table: Table, term: RequiredTerm, wanted: Wanted) -> Cell:
    """Return the cell of one term on one table."""
    rows, undecided, positive, renamed, unproven = table.all, [], set[Axis](), list[AuthorExpression](), set[Axis]()
    for authored in term.expressions:
        selected, open_ = table.select(authored.key, authored.operator, authored.values)
        rows &= selected
        if open_:
            undecided.append(authored)
        elif authored.operator in POSITIVE:
            positive.update(axes_of(snapshot, table, authored.key))
        if authored.operator == "NotIn" and not table.under_every_name(authored.key, authored.values).issubset(authored.values):
            unproven.update(axes_of(snapshot, table, authored.key))  # nodes with the other names are left
        if authored.operator == "In" and authored.key in table.other_names and table.other_names_in(authored.key, authored.values):
            renamed.append(authored)
            positive -= {"sharing"} if is_product(table.platform, authored.key) else set()  # how it is shared, the key then does not say
    for template in snapshot.templates.values():
        if selects_template(term, template):
            rows &= template.rows
            positive.update(AXES)
        else:
            rows &= ~table.templated.get(template.template.name, 0)
    return Cell(table, term, rows, tuple(undecided), frozenset(positive - unproven), tuple(renamed), *_offered(table, rows, wanted))


def _offered(table: Table, rows: int, wanted: Wanted) -> tuple[tuple[int, ...], bool, int]:
    """Return ``Cell.offered``, ``possible`` and ``universe``."""
    offered = tuple([rows & table.enough(name, count) for name, count in wanted.items()])
    return offered, 0 not in offered, table.of_vendors(tuple(wanted))


def selects_template(term: RequiredTerm, template: CompiledTemplate) -> bool:
    """Return whether only nodes with all of the template's labels can match."""
    return all(term.has(label) for label in template.labels)


def names_other_platform(snapshot: Snapshot, table: Table, term: RequiredTerm) -> bool:
    """Return whether a positive expression on a key that only other platforms have excludes this one."""
    if len(snapshot.tables) == 1:
        return False
    keys = (authored.key for authored in term.expressions if authored.operator in POSITIVE and authored.key not in table.values)
    return any(key in other.values for key in keys for other in snapshot.tables.values())


def axes_of(snapshot: Snapshot, table: Table, key: str) -> tuple[Axis, ...]:
    """Return the axes to which a key belongs that the platform sets before a node exists."""
    platform = table.platform
    if key in platform.capacity_keys:
        return ("capacity",)
    by_label = key in platform.labels
    if by_label and platform.cloud is None:
        return ("machine", "sharing")
    scheme = snapshot.catalog.schemes[platform.sharing]
    shares = (platform.cloud is None or scheme.slice_key is not None) and any(key in v.labels for v in scheme.variants)
    return ("sharing",) if shares else ("machine",) if by_label else ()


class Space(NamedTuple):
    """All cells of a pod, and the resource names it asks for that any table offers."""

    cells: tuple[Cell, ...]
    wanted: Wanted

    def possible_anywhere(self) -> bool:
        """Return whether any cell leaves an offer, policies aside."""
        return any(cell.possible for cell in self.cells)

    def left(self, inside: int) -> bool:
        """Return whether any cell leaves something within these rows."""
        return any(cell.leaves(inside) for cell in self.cells)

    def asking(self, wanted: Wanted) -> Space:
        """Return the same terms for a pod that asks for other resource names."""
        return Space(tuple([Cell(*cell[:6], *_offered(cell.table, cell.rows, wanted)) for cell in self.cells]), wanted)


def everything(snapshot: Snapshot) -> int:
    """Return all rows of every table."""
    return sum(table.all for table in snapshot.tables.values())
