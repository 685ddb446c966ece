"""The outcomes of policies on one stored pod, as data that can be grouped: pods with the same outcome are
counted, not listed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from analysis.audit.audited_decision import AuditedDecision
from kube.pod import field_of
from kube.tree import Path, Raw, apply_patch, diff, remove_at, set_at, value_at
from policies.patch.record import APPLIED
from policies.verdict import AuditOutcome, Edit, Mode, Violation

Finding = Literal["would-change", "would-deny", "not-as-enforced", "no-longer-fits"]
"""What is found of a pod: a policy in Audit or Warn would change or deny it, were it in Enforce; it lacks what
policies in Enforce write, since it was admitted while Berth was away or under other policies; policies in
Enforce would deny it as it is."""
FINDINGS: tuple[Finding, ...] = ("would-change", "would-deny", "not-as-enforced", "no-longer-fits")
DENIALS: tuple[Finding, ...] = ("would-deny", "no-longer-fits")


_WHOLE = ("nodeSelectorTerms",)
"""Lists of which all is read, so that they may be replaced."""
_RECORD: Path = ("metadata", "annotations", APPLIED)


class AuditResult(NamedTuple):
    """What policies say of pods that are alike."""

    policies: tuple[str, ...]
    """One in Audit or Warn, ``ClusterGPUPolicy/training``; of those in Enforce all that ask for it, sorted."""
    mode: Mode
    finding: Finding
    rules: tuple[str, ...]
    """The rules that write or deny, each once."""
    codes: tuple[str, ...]
    """Of the denials, each once."""
    texts: tuple[str, ...]
    """The denials, in order."""
    paths: tuple[str, ...]
    """What is written, as ``tolerations``, ``affinity``: the fields of the pod, each once."""
    dropped: tuple[str, ...]
    """What policies in Enforce would then no longer write."""
    patch: str
    """The RFC 6902 patch, as JSON, that turns the pod that policies in Enforce make into the one that this policy would make
    besides, but for ``berth.dev/applied``; "" if there is none."""


def audit_results(judged: AuditedDecision) -> Iterator[AuditResult]:
    """Yield every outcome but "nothing"."""
    enforced = apply_patch(judged.came, judged.patch)
    for outcome in judged.audit_outcomes:
        yield _audit_outcomes(outcome, judged.came, enforced)
    if judged.missing:
        yield _edited(_policies(judged.missing), "Enforce", "not-as-enforced", judged.missing, "")
    if judged.violations:
        yield _denied(_policies(judged.violations), "Enforce", "no-longer-fits", judged.violations)


def _audit_outcomes(outcome: AuditOutcome, came: Raw, enforced: Raw) -> AuditResult:
    if outcome.violations:
        return _denied((outcome.policy,), outcome.mode, "would-deny", outcome.violations)
    found = list(diff(enforced, _with_record_of(enforced, apply_patch(came, outcome.patch)), whole=_WHOLE))
    patch = json.dumps(found, separators=(",", ":"), sort_keys=True) if found else ""
    return _edited((outcome.policy,), outcome.mode, "would-change", outcome.edits, patch, outcome.dropped)


def _with_record_of(enforced: Raw, pod: Raw) -> Raw:
    """Return the pod with the other's ``berth.dev/applied``: it is as long as all else that is written."""
    record = value_at(enforced, _RECORD)
    if record is not None:
        return dict(set_at(pod, _RECORD, record))
    without = remove_at(pod, _RECORD)
    if value_at(without, _RECORD[:-1]) == {} and value_at(enforced, _RECORD[:-1]) is None:
        without = remove_at(without, _RECORD[:-1])
    return dict(without)


def _edited(
    policies: tuple[str, ...], mode: Mode, finding: Finding, edits: Sequence[Edit], patch: str, dropped: Sequence[Edit] = ()
) -> AuditResult:
    rules = tuple(dict.fromkeys(edit.rule for edit in (*edits, *dropped)))
    return AuditResult(policies, mode, finding, rules, (), (), _fields(edits), _fields(dropped), patch)


def _fields(edits: Sequence[Edit]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(field_of(edit.path) for edit in edits))


def _denied(policies: tuple[str, ...], mode: Mode, finding: Finding, violations: Sequence[Violation]) -> AuditResult:
    rules, codes = (tuple(dict.fromkeys(getattr(one, name) for one in violations)) for name in ("rule", "code"))
    return AuditResult(policies, mode, finding, rules, codes, tuple(map(str, violations)), (), (), "")


def _policies(found: Sequence[Edit] | Sequence[Violation]) -> tuple[str, ...]:
    return tuple(sorted({policy for one in found for policy in one.policies}))
