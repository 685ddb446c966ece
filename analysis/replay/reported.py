"""What reports say was found of pods then (``analysis.audit.workload_report`` writes them), held against what is found of
the same pods now."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from analysis.audit.ledger import AuditedPod
from analysis.audit.outcomes import AuditResult as Audited
from analysis.audit.outcomes import Finding
from analysis.audit.stored_report import stored_report
from analysis.replay import effects
from analysis.replay.difference import TURNS, Difference, Side, Turn
from analysis.replay.effects import EditEffect
from analysis.replay.stakes import Stake
from analysis.replay.tally import ReplayOutcome
from kube.pod import field_of

NEW: dict[Finding, Turn] = {
    "no-longer-fits": "newly-denied",
    "not-as-enforced": "other-edits",
    "would-change": "other-would",
    "would-deny": "other-would",
}
"""What it is called if a finding was not there then."""
GONE: dict[Finding, Turn] = {**NEW, "no-longer-fits": "newly-admitted"}
"""What it is called if a finding is there no more."""
_WORDS: dict[Finding, str] = {
    "no-longer-fits": "denied",
    "not-as-enforced": "edited",
    "would-change": "would change",
    "would-deny": "would deny",
}

Owner = tuple[str, str, str]
"""Namespace, kind and name of a workload; the kind of pods that nobody owns is Namespace."""


class ReportedFinding(NamedTuple):
    """One finding, without the pods that have it."""

    finding: Finding
    policies: tuple[str, ...]
    codes: tuple[str, ...]


@dataclass(slots=True)
class Reported:
    """The findings on one workload then. ``effects`` None: the report has no patch for want of room."""

    found: dict[ReportedFinding, frozenset[EditEffect] | None] = field(default_factory=dict)
    whole: bool = True
    """False if the report left findings out."""


def read_reports(reports: Iterable[Mapping[str, Any]]) -> dict[Owner, Reported]:
    """Return the findings of Berth's reports; others, and what is no finding, say nothing."""
    workloads: dict[Owner, Reported] = {}
    for report in map(stored_report, reports):
        own = workloads.setdefault((report.namespace, report.kind, report.name), Reported())
        own.whole = own.whole and not report.left_out
        for one in report.results:
            own.found[ReportedFinding(one.finding, one.policies, one.codes)] = _effects(one.patch, left_out=one.patch_left_out)
    return workloads


def compare_reports(pods: Iterable[AuditedPod], reported: Mapping[Owner, Reported]) -> Iterator[tuple[AuditedPod, ReplayOutcome]]:
    """Yield every pod with what is found otherwise of it. A workload without a report had no findings."""
    by_owner: dict[Owner, list[AuditedPod]] = {}
    for pod in pods:
        by_owner.setdefault((pod.workload.namespace, pod.workload.kind, pod.workload.name), []).append(pod)
    for owner, own in by_owner.items():
        then = reported.get(owner, Reported())
        now = {_of(one): _effects(one.patch, left_out=False) for pod in own for one in pod.outcomes}
        gone = sorted(found for found, did in then.found.items() if found not in now or _differs(did, now[found]))
        for pod in own:
            mine = {_of(one) for one in pod.outcomes}
            new = (
                sorted(found for found in mine if found not in then.found or _differs(then.found[found], now[found])) if then.whole else []
            )
            differs = _difference(new, gone, then, now) if new or gone else None
            workload = ("Pod", "") if owner[1] == "Namespace" else owner[1:]
            word = next((_WORDS[one.finding] for one in pod.outcomes if one.mode == "Enforce"), "admitted")
            stake = Stake(pod.gpus, pod.usd)
            yield pod, ReplayOutcome(owner[0], workload, word, pod.matched, compared=True, difference=differs, stake=stake)


def _difference(
    new: list[ReportedFinding], gone: list[ReportedFinding], then: Reported, now: Mapping[ReportedFinding, frozenset[EditEffect] | None]
) -> Difference:
    turn = min((*(NEW[one.finding] for one in new), *(GONE[one.finding] for one in gone)), key=TURNS.index)
    policies = tuple(sorted({policy for one in (*new, *gone) for policy in one.policies}))
    return Difference(turn, policies, _side(gone, then.found), _side(new, now))


def _side(found: list[ReportedFinding], did: Mapping[ReportedFinding, frozenset[EditEffect] | None]) -> Side:
    if not found:
        return Side("nothing")
    codes = {code for one in found for code in one.codes}
    fields = {field_of(effect.path) for one in found for effect in did[one] or ()}
    return Side(_WORDS[found[0].finding], tuple(sorted(codes)), tuple(sorted(fields)))


def _of(one: Audited) -> ReportedFinding:
    return ReportedFinding(one.finding, one.policies, one.codes)


def _differs(then: frozenset[EditEffect] | None, now: frozenset[EditEffect] | None) -> bool:
    return then is not None and now is not None and then != now


def _effects(patch: str, *, left_out: bool) -> frozenset[EditEffect] | None:
    if left_out:
        return None
    try:
        return frozenset(effects.of_patch(json.loads(patch) if patch else []))
    except (ValueError, RecursionError):
        return None
