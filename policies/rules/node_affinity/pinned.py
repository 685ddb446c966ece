"""Pods that are pinned to one node: is that node inside R? Only a node whose labels are known can be outside.

Labels come from a cluster, so they vary widely, and a node that has just joined has fewer: a missing label
proves nothing. A value that the catalog does not know means a new machine if the label identifies the
machine; the labels of feature discovery change with each driver, and prove nothing then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kube.pod import NODE_NAME, TERMS
from kube.tree import Path
from policies.facts import platform_detection
from policies.fixes import Fix, leave_out, request_whole
from policies.messages import At, Phrase, phrase
from policies.offers.constraints import fields, meet, who
from policies.offers.table import Table
from policies.planning.plan import Plan
from policies.planning.requirement_words import detail_constraints, list_constraints
from policies.rules.node_affinity import NAME
from policies.verdict import Remark, Violation


def check(plan: Plan) -> Iterator[Violation | Remark]:
    """Yield a violation for a known node that carries no allowed offer, or that is on a platform not in
    force; an unknown node is remarked."""
    if not plan.constraints:
        return
    yield from _foreign(plan)
    node = plan.pod.node_name or plan.pod.pinned_node
    if not node:
        if plan.pod.pinned_node is not None and plan.space.possible_anywhere() and not plan.space.left(plan.required):
            yield Remark(code="BERTH-213", found=phrase("daemon"), rule=NAME)
        return
    labels = plan.snapshot.cluster.nodes.get(node)
    if labels is None:
        yield Remark(code="BERTH-213", found=phrase("unknown"), rule=NAME, policies=who(plan.constraints))
        return
    labels = platform_detection.newer(plan.snapshot.catalog, labels)
    carried = list(_carried(plan, labels))
    if carried and not any(rows & plan.required for _, rows in carried):
        yield Violation(
            code="BERTH-124",
            found=phrase(
                "outside",
                where=_where(plan),
                label=_shown(plan, *carried[0], labels),
                demands=list_constraints(plan.constraints),
            ),
            advice=phrase("fix"),
            more=(detail_constraints(plan.constraints),),
            rule=NAME,
            path=_place(plan),
            fields=fields(plan.constraints),
            fixes=_let_go(plan),
        )
    home = platform_detection.home(plan.snapshot.catalog, labels)
    sold = any(constraint.axis == "capacity" for constraint in plan.constraints)
    if (sold or not carried) and home and home not in plan.snapshot.tables:
        yield Violation(
            code="BERTH-124",
            found=phrase("elsewhere", where=_where(plan), platform=home, demands=list_constraints(plan.constraints)),
            advice=phrase("fix"),
            more=(phrase("platforms", platforms=tuple(plan.snapshot.tables)), detail_constraints(plan.constraints)),
            rule=NAME,
            path=_place(plan),
            fields=fields(plan.constraints),
            fixes=_let_go(plan),
        )


def _foreign(plan: Plan) -> Iterator[Violation]:
    """Yield a violation for devices outside what is required of machines, whatever node they are on."""
    demands = [constraint for constraint in plan.constraints if constraint.axis == "machine"]
    for name in plan.space.wanted:
        if demands and not any(meet(table.of_resource(name), demands) for table in plan.snapshot.tables.values()):
            yield Violation(
                code="BERTH-126",
                found=phrase("device", name=name, demands=list_constraints(demands)),
                advice=phrase("ask for device"),
                more=(detail_constraints(demands),),
                rule=NAME,
                fields=fields(demands),
                fixes=request_whole(known, plan.snapshot.catalog) if (known := plan.snapshot.resource(name)) else (),
            )


def _place(plan: Plan) -> Path:
    return NODE_NAME if plan.pod.node_name else TERMS


def _let_go(plan: Plan) -> tuple[Fix, ...]:
    """Return the fix by which the scheduler chooses the node."""
    if plan.pod.node_name:
        return leave_out(NODE_NAME)
    terms = enumerate(plan.pod.terms)
    return (Fix("unlabel", tuple((*TERMS, i, "matchFields", j) for i, term in terms for j, _ in enumerate(term.get("matchFields") or ()))),)


def _where(plan: Plan) -> At | Phrase:
    return At(NODE_NAME) if plan.pod.node_name else phrase("match fields")


def _shown(plan: Plan, table: Table, rows: int, labels: Mapping[str, str]) -> str:
    """Return the label that best shows why, as ``key=value``: of the axis that leaves the node nothing, or
    one that identifies its machine."""
    platform = table.platform
    axis = next((c.axis for c in plan.constraints if not rows & c.rows), "machine")
    sharing_keys = tuple(key for variant in plan.snapshot.catalog.schemes[platform.sharing].variants for key in variant.labels)
    of_axis = {"capacity": platform.capacity_keys, "sharing": sharing_keys}.get(axis, ())
    telling = [key for key in platform.labels if key in _telling(table, labels)]
    known = [key for key in telling if _known(table, key, labels)]
    key = next(key for key in (*of_axis, *known, *telling, *platform.labels) if key in labels)
    return f"{key}={labels[key]}"


def _carried(plan: Plan, labels: Mapping[str, str]) -> Iterator[tuple[Table, int]]:
    """Yield the rows of what the pod asks for that the node may have: on its own platform, or by its
    labels on those in force."""
    tables = plan.snapshot.tables
    home = platform_detection.home(plan.snapshot.catalog, labels)
    for table in (tables[home],) if home in tables else tables.values():
        rows = _carries(table, labels)
        if home not in tables and home:
            rows &= ~table.unknown  # a machine that its own platform may well know
        if rows := _of_pod(plan, table, rows):
            yield table, rows


def _of_pod(plan: Plan, table: Table, rows: int) -> int:
    """Return the rows that the pod asks for among those that a node may have. The node exists: if nothing
    of that name is known to be on it, the devices of the pod's vendors on it are judged, and if there are
    none, whatever it has."""
    names = vendors = 0
    for name in plan.space.wanted:
        names |= table.of_resource(name)
    for vendor in plan.vendors:
        vendors |= table.by_vendor.get(vendor, 0)
    return rows & names or rows & vendors or rows


def _carries(table: Table, labels: Mapping[str, str]) -> int:
    """Return the rows that the node's labels agree with; 0 if it has no label of the platform's own. The
    labels of feature discovery tell more of the machine, and are ignored where they contradict it: it
    reads one of two models, and names them as a driver does."""
    platform = table.platform
    if not any(key in labels for key in platform.labels):
        return 0
    telling = _telling(table, labels)
    known = {key for key in telling if _known(table, key, labels)}
    if telling and not known:
        return _new(table, labels)
    # Of a machine that is new in part, the size or number of devices may be as no known machine of that model has them.
    binding = {*(platform.labels if known == telling else known), *platform.capacity_keys}
    readable = [key for key in table.values if key in labels and _known(table, key, labels)]
    rows = _agreeing(table, labels, table.all, [key for key in readable if key in binding])
    rows = _agreeing(table, labels, rows, [key for key in readable if key not in binding]) or rows
    cut = any(table.is_cut(key, labels[key]) for key in readable)
    return rows & table.by_sharing.get("MIG", 0) or rows if cut else rows


def _agreeing(table: Table, labels: Mapping[str, str], rows: int, keys: Iterable[str]) -> int:
    for key in keys:
        rows &= table.select(key, "In", (labels[key],))[0]
    return rows


def _new(table: Table, labels: Mapping[str, str]) -> int:
    """Return the rows of an unknown model; labels for how it is sold still apply."""
    rows = table.unknown
    for key in (key for key in (*table.platform.labels, *table.platform.capacity_keys) if key in labels and key in table.values):
        rows &= sum(found for possible, found in table.values[key].items() if not {labels[key], "*", "?"}.isdisjoint(possible))
    return rows


def _telling(table: Table, labels: Mapping[str, str]) -> frozenset[str]:
    """Return the node's labels that identify its machine."""
    return frozenset(key for keys in table.platform.machine_keys for key in keys if key in labels)


def _known(table: Table, key: str, labels: Mapping[str, str]) -> bool:
    """Return whether any platform in force has this value for the label."""
    return table.knows(key, labels[key])
