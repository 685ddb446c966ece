"""The page of all groups, with the problems that `berth scan` finds at each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any
from zlib import crc32

from analysis.scan import wording
from analysis.scan.finding import Finding, Kind
from console.berths.drawing import Drawing, drawing
from console.berths.groups import DeviceLine, ModelGroup, groups
from console.berths.pools import EmptyPool, empty
from console.server.page import Page, Visit
from console.server.query import LONGEST_NAME, Query, paged
from console.world.view import View
from kube.labels import NODE_POOL
from kube.taints import Taint

CARDS = 9
"""Groups of a page: three rows of three on a wide screen."""
MOST_LINES = 4
"""Device names of one group that are drawn; the page of the group has all."""
MOST_TAINTS = 5
SORTS = ("name", "free", "idle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One group, or one NodePool without nodes, as a page shows it."""

    title: str
    address: str
    """Of its own page; "" if its name is none that an address can have."""
    group: ModelGroup | None
    pool: EmptyPool | None
    drawn: Sequence[tuple[DeviceLine, Drawing]]
    taints: Sequence[tuple[str, int]]
    """(``key=value:effect``, nodes that have it)"""
    marks: Sequence[Mark]


def berths(visit: Visit) -> Page:
    """All groups, and the NodePools that have no node yet."""
    view, query = visit.view, visit.query
    fleet = view.fleet
    if fleet is None:
        return no_nodes(view)
    sort = query.choice("sort", SORTS, "name")
    every = groups(view.world)
    without = empty(fleet.pools, pool_names(view), view.world.prices)
    rows: list[ModelGroup | EmptyPool] = [*sorted(every, key=_ORDERS[sort]), *without]
    listed = paged(rows, query, "/berths", size=CARDS)
    found = marks(view)
    cards = [_pool_card(one, found, query) if isinstance(one, EmptyPool) else card(one, found, query) for one in listed.rows]
    totals = _totals(every)
    values = {
        "cards": cards,
        "paged": listed,
        "totals": totals,
        "sort": sort,
        "sorts": [(one, query.link("/berths", sort=one, page="")) for one in SORTS],
    }
    return Page(template="berths.html", title="Berths", values=values)


def no_nodes(view: View) -> Page:
    """The page for somebody who may not list nodes."""
    who = view.scope.who
    values = {"user": quote(who) if who and who.isprintable() else "NAME", "binding": crc32(who.encode())}
    return Page(template="berths_rights.html", title="Berths", values=values)


def pool_names(view: View) -> set[str]:
    """Return the NodePools that have nodes."""
    return {name for node in view.world.seen.nodes.values() if (name := node.labels.get(NODE_POOL))}


def _most_free(one: ModelGroup) -> tuple[Any, ...]:
    whole = max((line.whole or 0 for line in one.lines), default=0)
    return -whole, -max((line.free or 0 for line in one.lines), default=0), one.key


_ORDERS: Mapping[str, Callable[[ModelGroup], Any]] = {
    "name": lambda one: one.key,
    "free": _most_free,
    "idle": lambda one: (-(one.usd_free or 0.0), one.key),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTotals:
    """What all groups have together."""

    groups: int
    nodes: int
    whole: int
    """Nodes of which every device is free."""
    usd: float | None
    usd_free: float | None
    usd_out: float | None
    unpriced: int
    known: bool


def _totals(every: Sequence[ModelGroup]) -> GroupTotals:
    def add(values: Sequence[float | None]) -> float | None:
        found = [one for one in values if one is not None]
        return sum(found) if found else None

    return GroupTotals(
        groups=len(every),
        nodes=sum(len(one.nodes) for one in every),
        whole=sum(line.whole or 0 for one in every for line in one.lines),
        usd=add([one.usd for one in every]),
        usd_free=add([one.usd_free for one in every]),
        usd_out=add([one.usd_out for one in every]),
        unpriced=sum(one.unpriced for one in every),
        known=all(line.known for one in every for line in one.lines),
    )


def card(group: ModelGroup, found: Mapping[Named, Sequence[Mark]], query: Query) -> Card:
    """Return a group as a page shows it."""
    what, name, model = group.key
    return Card(
        title=f"{what} {name}",
        address=_address(query, what, name, model),
        group=group,
        pool=None,
        drawn=[(line, drawing(line.uses)) for line in group.lines[:MOST_LINES]],
        taints=[(taint_text(taint), count) for taint, count in group.taints[:MOST_TAINTS]],
        marks=found.get((what, name), ()),
    )


def _pool_card(one: EmptyPool, found: Mapping[Named, Sequence[Mark]], query: Query) -> Card:
    name = one.pool.name
    return Card(
        title=f"{POOL} {name}",
        address=_address(query, POOL, name, ""),
        group=None,
        pool=one,
        drawn=(),
        taints=[(taint_text(taint), 0) for taint in one.pool.taints[:MOST_TAINTS]],
        marks=found.get((POOL, name), ()),
    )


def _address(query: Query, what: str, name: str, model: str) -> str:
    if max(len(what), len(name), len(model)) > LONGEST_NAME:
        return ""
    return Query({}).link("/berths/group", kind=what, name=name, model=model)


def taint_text(taint: Taint) -> str:
    """Return ``key=value:effect``, as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


Named = tuple[str, str]
"""What a group of nodes is called, and its name."""
POOL = "NodePool"
MOST = 10
"""Findings of one kind that a page shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The findings of one kind at one group."""

    kind: Kind
    title: str
    why: str
    advice: str
    """What to type next, of the first of them."""
    facts: Sequence[str]
    """Each: where, what hangs on it, what is so."""
    more: int
    count: int


def marks(view: View) -> Mapping[Named, Sequence[Mark]]:
    """Return the marks of every group that has some, in the order of the report."""
    found: dict[Named, dict[Kind, list[Finding]]] = {}
    for finding in view.findings():
        for group in dict.fromkeys(_about(finding, view)):
            found.setdefault(group, {}).setdefault(finding.kind, []).append(finding)
    return {group: [_mark(kind, each) for kind, each in kinds.items()] for group, kinds in found.items()}


def _about(finding: Finding, view: View) -> Iterator[Named]:
    values = finding.values
    if finding.where.kind == "EC2NodeClass":
        pools = values.get("pools", ())
        yield from ((POOL, str(pool)) for pool in (pools if isinstance(pools, tuple) else ()))
    elif finding.where.kind == "resource":
        offered = view.world.snapshot.cluster.resources
        nodes = view.world.seen.nodes
        yield from (nodes[node].group for node, names in offered.items() if finding.where.name in names and node in nodes)
    elif finding.where.namespace:
        group = values.get("group")
        if isinstance(group, tuple) and len(group) == 2:
            yield str(group[0]), str(group[1])
    else:
        yield finding.where.kind, finding.where.name


def _mark(kind: Kind, findings: Sequence[Finding]) -> Mark:
    return Mark(
        kind=kind,
        title=wording.title(kind),
        why=wording.why(kind),
        advice=wording.advice(findings[0]),
        facts=[f"{wording.describe_subject(one)}{wording.describe_weight(one)}: {wording.fact(one)}" for one in findings[:MOST]],
        more=max(0, len(findings) - MOST),
        count=len(findings),
    )
