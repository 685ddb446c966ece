"""The pages of the screen: the table, and what is behind one number of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.audit.ledger import AuditedPod
from analysis.world.counts import LABELS, PolicyCount
from analysis.world.recorded import Replayed
from console.impact.groups import groups
from console.server.page import NotShown, Page, Visit
from console.server.paging import paged

ROWS = 25
"""Policies of a page."""
COLUMNS = 8
"""Namespaces of a page: as many as fit beside the policies on a laptop."""
PODS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactRow:
    """One policy."""

    policy: str
    mode: str
    total: PolicyCount
    cells: Sequence[tuple[str, PolicyCount | None, str]]
    """(namespace, its pods, address of what is behind)"""


def impact(visit: Visit) -> Page:
    """The table of policies and namespaces: those with most findings first."""
    view, query = visit.view, visit.query
    cells = {id_: view.counted(id_) for id_ in view.policies()}
    totals = {id_: _total(found.values()) for id_, found in cells.items()}
    weights: Counter[str] = Counter()
    for found in cells.values():
        weights.update({namespace: _weight(count) for namespace, count in found.items()})
    columns = paged(sorted(view.namespaces(), key=lambda one: (-weights[one], one)), query, "/impact", field="namespaces", size=COLUMNS)
    rows = paged(sorted(cells, key=lambda id_: (-_weight(totals[id_]), id_)), query, "/impact", size=ROWS)
    modes = view.world.modes
    shown = [
        ImpactRow(
            policy=id_,
            mode=modes[id_],
            total=totals[id_],
            cells=[(one, cells[id_].get(one), query.link("/impact/cell", policy=id_, namespace=one)) for one in columns.rows],
        )
        for id_ in rows.rows
    ]
    hidden = len(view.world.policies) - len(cells)
    values = {"rows": shown, "columns": columns, "paged": rows, "every": view.counted_once(), "hidden": hidden}
    return Page(template="impact.html", title="Impact", values=values)


def _total(counts: Iterable[PolicyCount]) -> PolicyCount:
    total = PolicyCount()
    for one in counts:
        total.join(one)
    return total


def _weight(count: PolicyCount) -> int:
    return count.changed + count.denied


def cell(visit: Visit) -> Page:
    """What one policy finds of the pods of one namespace, or of all."""
    view, query = visit.view, visit.query
    policy, namespace = query.text("policy"), query.name("namespace")
    if policy not in view.world.modes or not view.shows_policy(policy):
        raise NotShown("This policy does not exist, or you may not list it. See the page Impact.")
    if namespace and namespace not in view.scope.pods:
        raise NotShown(f'You may not list pods in namespace {namespace}. Ask for the role "view" there.')
    pods = [pod for pod in view.pods() if policy in pod.matched and namespace in ("", pod.stored.namespace)]
    total = PolicyCount()
    for pod in pods:
        total.add(pod, {outcome.finding for outcome in pod.outcomes if policy in outcome.policies})
    listed = paged(
        sorted(pods, key=lambda pod: (not _found(pod, policy), pod.stored.namespace, pod.stored.name)), query, "/impact/cell", size=PODS
    )
    replayed = Replayed()
    for (id_, where), one in (view.world.replayed or {}).items():
        if id_ == policy and where in view.scope.pods and namespace in ("", where):
            replayed.pods += one.pods
            replayed.changed += one.changed
            replayed.denied += one.denied
    values = {
        "policy": policy,
        "replayed": None if view.world.replayed is None else replayed,
        "mode_name": view.world.modes[policy],
        "namespace": namespace,
        "total": total,
        "groups": groups(pods, policy, view.world.snapshot),
        "pods": [(pod, _found(pod, policy), f"/job?pod={pod.stored.namespace}/{pod.stored.name}") for pod in listed.rows],
        "paged": listed,
    }
    return Page(template="impact_cell.html", title=f"{policy}{f' in {namespace}' if namespace else ''}", values=values)


def _found(pod: AuditedPod, policy: str) -> list[str]:
    return [LABELS[outcome.finding] for outcome in pod.outcomes if policy in outcome.policies]
