"""The page of all groups, with the problems that `berth scan` finds at each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any
from zlib import crc32

from analysis.scan import wording
from analysis.scan.finding import Finding, Kind
from console.berths.drawing import drawing
from console.berths.groups import GroupKey, ModelGroup, add_known, groups
from console.berths.pools import POOL, EmptyPool, empty
from console.server.page import Page, Visit
from console.server.query import LONGEST_NAME, Query, paged
from console.world.view import View
from kube.labels import NODE_POOL

CARDS = 9
"""Groups of a page: three rows of three on a wide screen."""
SORTS = ("name", "free", "idle")


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
    values = {
        "paged": listed,
        "totals": _totals(every),
        "marks": marks(view),
        "drawing": drawing,
        "wording": wording,
        "address": _address,
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
    return -one.whole, -max((line.free or 0 for line in one.lines), default=0), one.key


_ORDERS: Mapping[str, Callable[[ModelGroup], Any]] = {
    "name": lambda one: one.key,
    "free": _most_free,
    "idle": lambda one: (-(one.usd_free or 0.0), one.key),
}


def _totals(every: Sequence[ModelGroup]) -> Mapping[str, Any]:
    """Return what all groups have together; ``whole``: nodes of which every device is free."""
    return {
        "groups": len(every),
        "nodes": sum(len(group.nodes) for group in every),
        "whole": sum(group.whole for group in every),
        "usd": add_known(group.usd for group in every),
        "usd_free": add_known(group.usd_free for group in every),
        "usd_out": add_known(group.usd_out for group in every),
        "unpriced": sum(group.unpriced for group in every),
        "known": all(line.known for group in every for line in group.lines),
    }


def _address(key: GroupKey) -> str:
    """Return the address of the page of a group; "" if its name is none that an address can have."""
    if max(map(len, key)) > LONGEST_NAME:
        return ""
    return Query({}).link("/berths/group", kind=key.what, name=key.name, model=key.model)


Named = tuple[str, str]
"""What a group of nodes is called, and its name."""


def marks(view: View) -> Mapping[Named, Mapping[Kind, Sequence[Finding]]]:
    """Return the findings at each group that has some, by kind, in the order of the report."""
    found: dict[Named, dict[Kind, list[Finding]]] = {}
    for finding in view.findings():
        for group in dict.fromkeys(_about(finding, view)):
            found.setdefault(group, {}).setdefault(finding.kind, []).append(finding)
    return found


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
