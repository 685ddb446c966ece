"""What one policy finds, grouped: pods of which it says the same are one group, with a diff of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from analysis.audit.audited_decision import audit_pod
from analysis.audit.ledger import AuditedPod
from analysis.audit.outcomes import AuditResult
from documents.diff import unified
from kube.tree import apply_patch
from policies.state.snapshot import Snapshot

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
