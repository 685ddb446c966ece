"""Pods that are pinned to one node: is that node inside R? Only a node whose labels are known can be outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from policies import refusal
from policies.compiled import who
from policies.offers import Table
from policies.plan import Plan
from policies.verdict import Violation

RULE = "node_affinity"


def check(plan: Plan) -> Iterator[Violation]:
    """A known node that carries no allowed offer; an unknown one is remarked."""
    if not plan.constraints:
        return
    node = plan.pod.node_name or plan.pod.pinned_node
    if not node:
        _daemon(plan)
        return
    labels = plan.snapshot.cluster.nodes.get(node)
    policies = who(plan.constraints)
    if labels is None:
        plan.remark("BERTH-213", "the pod names its node, whose labels are not known: where it runs is not judged", RULE, policies)
        return
    carried = [(table, rows) for table in plan.snapshot.tables.values() if (rows := _carries(plan, table, labels) & _wanted(plan, table))]
    if carried and not any(rows & plan.required[table.platform.name] for table, rows in carried):
        yield Violation(
            code="BERTH-124",
            fact=f"the node that {_where(plan)} names has {_shown(carried[0][0], labels)}, outside {refusal.joined(plan.constraints)}",
            fix="name another node, or none",
            detail=refusal.required(plan.constraints),
            rule=RULE,
            policies=policies,
        )


def _where(plan: Plan) -> str:
    return "spec.nodeName" if plan.pod.node_name else "matchFields metadata.name"


def _shown(table: Table, labels: Mapping[str, str]) -> str:
    """The first label of the platform that the node has, as ``key=value``."""
    key = next(key for key in table.platform.labels if key in labels)
    return f"{key}={labels[key]}"


def _daemon(plan: Plan) -> None:
    if plan.space.possible_anywhere() and not plan.space.left(plan.required):
        plan.remark("BERTH-213", "a DaemonSet's pod can't be moved: its nodes are outside what is required here", RULE)


def _wanted(plan: Plan, table: Table) -> int:
    rows = 0
    for name in plan.space.wanted:
        rows |= table.by_resource.get(name, 0)
    return rows


def _carries(plan: Plan, table: Table, labels: Mapping[str, str]) -> int:
    """Rows whose labels the node's agree with; 0 where the node has no label of the platform's own, or is another platform's."""
    own = [key for key in table.platform.labels if key in labels]
    others = (t.platform.anchor for t in plan.snapshot.tables.values() if t is not table)
    if not own or (table.platform.cloud is None and any(anchor in labels for anchor in others)):
        return 0
    known, unknown = table.all & ~table.unknown, table.unknown
    for key, classes in table.values.items():
        if key in labels:
            known &= sum(rows for possible, rows in classes.items() if labels[key] in possible or "*" in possible)
            unknown &= sum(rows for possible, rows in classes.items() if labels[key] in possible or "*" in possible or "?" in possible)
    return known or unknown
