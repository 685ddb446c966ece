"""The pages "Impact": what each policy would do to the pods of each namespace, and, behind a number, to which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from analysis.audit.judged import audit_pod
from analysis.audit.ledger import AuditedPod
from analysis.audit.outcomes import AuditResult
from analysis.world.counts import LABELS, PolicyCount
from analysis.world.recorded import Replayed
from console.server.page import NotShown, Page, Visit
from console.server.query import paged
from documents.diff import unified
from kube.tree import apply_patch
from policies.state.snapshot import Snapshot

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


MOST_GROUPS = 20
"""Groups that are shown whole; the others are counted."""
WORDS = {
    "would-change": "would be changed if this policy were in Enforce",
    "would-deny": "would be denied if this policy were in Enforce",
    "not-as-enforced": "without the edits of this policy: created while Berth was not called, or under other policies",
    "no-longer-fits": "would be denied if created today",
}
"""What is found, after the number of pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactGroup:
    """Pods of which a policy says the same."""

    finding: str
    words: str
    rules: Sequence[str]
    fields: Sequence[str]
    texts: Sequence[str]
    """Denials, each with its fix."""
    pods: int
    gpus: int
    usd: float | None
    workloads: Sequence[str]
    """``Job/train`` of the first some, sorted."""
    diff: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """All groups, those with most pods first."""

    shown: Sequence[ImpactGroup]
    more: int


def groups(pods: Sequence[AuditedPod], policy: str, snapshot: Snapshot) -> Groups:
    """Group what the policy finds of these pods."""
    found: dict[tuple[Any, ...], list[tuple[AuditedPod, AuditResult]]] = {}
    for pod in pods:
        for outcome in pod.outcomes:
            if policy in outcome.policies:
                key = outcome.finding, outcome.rules, outcome.codes, outcome.paths, outcome.dropped
                found.setdefault(key, []).append((pod, outcome))
    ordered = sorted(found.values(), key=lambda one: (-len(one), one[0][1]))
    return Groups(shown=[_group(one, snapshot) for one in ordered[:MOST_GROUPS]], more=max(0, len(ordered) - MOST_GROUPS))


def _called(pod: AuditedPod) -> str:
    """Return ``Job/train``; ``Pod/debug`` of a pod that nobody owns, which reports count under its namespace."""
    owner = pod.workload
    return f"Pod/{pod.stored.name}" if owner.kind == "Namespace" else f"{owner.kind}/{owner.name}"


def _group(members: Sequence[tuple[AuditedPod, AuditResult]], snapshot: Snapshot) -> ImpactGroup:
    first, outcome = members[0]
    prices = [pod.usd for pod, _ in members if pod.usd is not None]
    workloads = sorted({f"{pod.stored.namespace}: {_called(pod)}" for pod, _ in members})
    return ImpactGroup(
        finding=outcome.finding,
        words=WORDS[outcome.finding],
        rules=outcome.rules,
        fields=(*outcome.paths, *outcome.dropped),
        texts=outcome.texts,
        pods=len(members),
        gpus=sum(pod.gpus for pod, _ in members),
        usd=sum(prices) if prices else None,
        workloads=workloads,
        diff=_diff(first, outcome, snapshot),
    )


def _diff(pod: AuditedPod, outcome: AuditResult, snapshot: Snapshot) -> Sequence[str]:
    """Return what the policy would write into one pod besides what those in Enforce write; nothing where it writes nothing."""
    judged = audit_pod(pod.stored, snapshot.facts_for(pod.stored.namespace)) if outcome.patch else None
    if judged is None:
        return ()
    enforced = apply_patch(judged.came, judged.patch)
    label = _called(pod)
    return unified(enforced, apply_patch(enforced, orjson.loads(outcome.patch)), label, f"{label} (with this policy)")
