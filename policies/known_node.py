"""Pods that are pinned to one node: is that node inside R? Only a node whose labels are known can be outside.

Labels come from a cluster, so that there are all sorts of them, and fewer on a node that has just come: one that is missing says
nothing. One with a value that the catalog does not know says that a machine is new where it tells the machine; feature discovery's
change with each driver, and say nothing then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from policies import detect, refusal
from policies.compiled import Constraint, who
from policies.offers import Table
from policies.plan import Plan
from policies.policy import Taint, TolerationPattern
from policies.verdict import Violation

RULE = "node_affinity"


def check(plan: Plan) -> Iterator[Violation]:
    """A known node that carries no allowed offer; an unknown one, and one of a platform that is not in force, is remarked."""
    if not plan.constraints:
        return
    yield from _foreign(plan)
    node = plan.pod.node_name or plan.pod.pinned_node
    if not node:
        if plan.pod.pinned_node is not None:
            _daemon(plan)
        return
    labels = plan.snapshot.cluster.nodes.get(node)
    policies = who(plan.constraints)
    if labels is None:
        plan.remark("BERTH-213", "the pod names its node, whose labels are not known: where it runs is not judged", RULE, policies)
        return
    labels = detect.newer(plan.snapshot.catalog, labels)
    carried = list(_carried(plan, labels))
    if carried and not any(rows & plan.required[table.platform.name] for table, rows in carried):
        yield Violation(
            code="BERTH-124",
            fact=f"the node that {_where(plan)} names has {_shown(plan, *carried[0], labels)}, outside {refusal.joined(plan.constraints)}",
            fix="name another node, or none",
            detail=refusal.required(plan.constraints),
            rule=RULE,
            policies=policies,
        )
    home = detect.home(plan.snapshot.catalog, labels)
    sold = any(constraint.axis == "capacity" for constraint in plan.constraints)
    if (sold or not carried) and home and home not in plan.snapshot.tables:
        yield Violation(
            code="BERTH-124",
            fact=f"the node that {_where(plan)} names is of {home}, where {refusal.joined(plan.constraints)} is not judged",
            fix="name another node, or none",
            detail=f"Platforms in force here: {', '.join(plan.snapshot.tables)}. {refusal.required(plan.constraints)}",
            rule=RULE,
            policies=policies,
        )


def _foreign(plan: Plan) -> Iterator[Violation]:
    """Devices that are outside what is required of machines, whatever node they are on."""
    demands = [constraint for constraint in plan.constraints if constraint.axis == "machine"]
    for name in plan.space.wanted:
        if demands and not any(_inside(table, name, demands) for table in plan.snapshot.tables.values()):
            yield Violation(
                code="BERTH-126",
                fact=f"{name} is no device of {refusal.joined(demands)}",
                fix="ask for a device that is allowed here",
                detail=refusal.required(demands),
                rule=RULE,
                policies=who(demands),
            )


def _inside(table: Table, name: str, demands: Iterable[Constraint]) -> int:
    rows = table.of_resource(name)
    for constraint in demands:
        rows &= constraint.rows[table.platform.name]
    return rows


def _where(plan: Plan) -> str:
    return "spec.nodeName" if plan.pod.node_name else "matchFields metadata.name"


def _shown(plan: Plan, table: Table, rows: int, labels: Mapping[str, str]) -> str:
    """The label that best says why, as ``key=value``: of the axis that leaves the node nothing, or of what tells its machine."""
    platform = table.platform
    axis = next((c.axis for c in plan.constraints if not rows & c.rows[platform.name]), "machine")
    of_axis = {"capacity": platform.capacity_keys, "sharing": _sharing_keys(plan, table)}.get(axis, ())
    telling = [key for key in platform.labels if key in _telling(table, labels)]
    known = [key for key in telling if _known(table, key, labels)]
    key = next(key for key in (*of_axis, *known, *telling, *platform.labels) if key in labels)
    return f"{key}={labels[key]}"


def _sharing_keys(plan: Plan, table: Table) -> tuple[str, ...]:
    return tuple(key for variant in plan.snapshot.catalog.schemes[table.platform.sharing].variants for key in variant.labels)


def _daemon(plan: Plan) -> None:
    if plan.space.possible_anywhere() and not plan.space.left(plan.required):
        plan.remark("BERTH-213", "a DaemonSet's pod can't be moved: its nodes are outside what is required here", RULE)


def check_taints(plan: Plan) -> Iterator[Violation]:
    """A pod that names its node passes the scheduler by, and with it the node's taints: those that nobody here may tolerate hold all the
    same."""
    taints = plan.snapshot.cluster.taints.get(plan.pod.node_name, ()) if plan.wishes.forbid else ()
    for pattern, policy in plan.wishes.forbid if taints else ():
        if any(_is(taint, pattern) for taint in taints):
            yield Violation(
                code="BERTH-132",
                fact=f"spec.nodeName names a node with the taint {pattern}, which is forbidden here",
                fix="remove spec.nodeName and let the scheduler choose",
                rule="tolerations",
                policies=(policy,),
            )


def _is(taint: Taint, pattern: TolerationPattern) -> bool:
    return taint.key == pattern.key and pattern.value in (None, taint.value) and pattern.effect in (None, taint.effect)


def _carried(plan: Plan, labels: Mapping[str, str]) -> Iterator[tuple[Table, int]]:
    """The rows of what the pod asks for that the node may have: on its own platform, or by what its labels say on those in force."""
    tables = plan.snapshot.tables
    home = detect.home(plan.snapshot.catalog, labels)
    for table in (tables[home],) if home in tables else tables.values():
        rows = _carries(table, labels)
        if home not in tables and home:
            rows &= ~table.unknown  # a machine that its own platform may well know
        if rows := _of_pod(plan, table, rows):
            yield table, rows


def _of_pod(plan: Plan, table: Table, rows: int) -> int:
    """Of what a node may have that which the pod asks for. The node is there: where nothing of that name is known to be on it, the pod's
    vendors' devices on it are judged, and whatever it has where there are none."""
    names = vendors = 0
    for name in plan.space.wanted:
        names |= table.of_resource(name)
    for vendor in plan.vendors:
        vendors |= table.by_vendor.get(vendor, 0)
    return rows & names or rows & vendors or rows


def _carries(table: Table, labels: Mapping[str, str]) -> int:
    """Rows that the node's labels agree with; 0 where it has no label of the platform's own. Feature discovery's say more of the
    machine, and nothing where they contradict it: it reads one of two models, and calls them as a driver does."""
    platform = table.platform
    if not any(key in labels for key in platform.labels):
        return 0
    telling = _telling(table, labels)
    known = {key for key in telling if _known(table, key, labels)}
    if telling and not known:
        return _new(table, labels)
    # Of a machine that is new in part, the size or number of devices may be as no known machine of that model has them.
    binding = {*(platform.labels if known == telling else known), *platform.capacity_keys}
    said = [key for key in table.values if key in labels and _known(table, key, labels)]
    rows = _agreeing(table, labels, table.all, [key for key in said if key in binding])
    rows = _agreeing(table, labels, rows, [key for key in said if key not in binding]) or rows
    cut = any(table.is_cut(key, labels[key]) for key in said)
    return rows & table.by_sharing.get("MIG", 0) or rows if cut else rows


def _agreeing(table: Table, labels: Mapping[str, str], rows: int, keys: Iterable[str]) -> int:
    for key in keys:
        rows &= table.select(key, "In", (labels[key],))[0]
    return rows


def _new(table: Table, labels: Mapping[str, str]) -> int:
    """Rows of an unknown model: what says how it is sold still binds."""
    rows = table.unknown
    for key in (key for key in (*table.platform.labels, *table.platform.capacity_keys) if key in labels and key in table.values):
        rows &= sum(found for possible, found in table.values[key].items() if not {labels[key], "*", "?"}.isdisjoint(possible))
    return rows


def _telling(table: Table, labels: Mapping[str, str]) -> frozenset[str]:
    """The node's labels that say which machine it is."""
    return frozenset(key for keys in table.platform.machine_keys for key in keys if key in labels)


def _known(table: Table, key: str, labels: Mapping[str, str]) -> bool:
    """Whether any platform in force has this value for the label."""
    return table.knows(key, labels[key])
