"""The pages "Impact": what each policy would do to the pods of each namespace, and, behind a number, to which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import starmap
from typing import Any, NamedTuple

import orjson

from analysis.audit.audited_decision import audit_pod
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
    values = {
        "columns": columns,
        "paged": rows,
        "cells": cells,
        "totals": totals,
        "every": view.counted_once(),
        "hidden": len(view.world.policies) - len(cells),
    }
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
    groups = _groups(pods, policy)
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
        "groups": groups[:MOST_GROUPS],
        "more_groups": max(0, len(groups) - MOST_GROUPS),
        "words": WORDS,
        "diff_of": partial(_diff, snapshot=view.world.snapshot),
        "found": partial(_found, policy=policy),
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


class ImpactGroup(NamedTuple):
    """Pods of which a policy says the same."""

    outcome: AuditResult
    """That of the first pod."""
    pods: Sequence[AuditedPod]

    @property
    def usd(self) -> float | None:
        """Dollars an hour of the pods whose price is known; None if none is."""
        prices = [pod.usd for pod in self.pods if pod.usd is not None]
        return sum(prices) if prices else None

    @property
    def workloads(self) -> Sequence[str]:
        """``ml-team: Job/train`` of each, sorted."""
        return sorted({f"{pod.stored.namespace}: {_called(pod)}" for pod in self.pods})


def _groups(pods: Sequence[AuditedPod], policy: str) -> Sequence[ImpactGroup]:
    """Group what the policy finds of these pods: the groups with most pods first."""
    found: dict[tuple[Any, ...], tuple[AuditResult, list[AuditedPod]]] = {}
    for pod in pods:
        for outcome in pod.outcomes:
            if policy in outcome.policies:
                key = outcome.finding, outcome.rules, outcome.codes, outcome.paths, outcome.dropped
                found.setdefault(key, (outcome, []))[1].append(pod)
    return sorted(starmap(ImpactGroup, found.values()), key=lambda group: (-len(group.pods), group.outcome))


def _called(pod: AuditedPod) -> str:
    """Return ``Job/train``; ``Pod/debug`` of a pod that nobody owns, which reports count under its namespace."""
    owner = pod.workload
    return f"Pod/{pod.stored.name}" if owner.kind == "Namespace" else f"{owner.kind}/{owner.name}"


def _diff(group: ImpactGroup, snapshot: Snapshot) -> Sequence[str]:
    """Return what the policy would write into the first pod besides what those in Enforce write; nothing where it writes nothing."""
    pod, outcome = group.pods[0], group.outcome
    judged = audit_pod(pod.stored, snapshot.facts_for(pod.stored.namespace)) if outcome.patch else None
    if judged is None:
        return ()
    enforced = apply_patch(judged.came, judged.patch)
    label = _called(pod)
    return unified(enforced, apply_patch(enforced, orjson.loads(outcome.patch)), label, f"{label} (with this policy)")
