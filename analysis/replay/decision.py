"""One decision on a pod in a form in which that of another time, other policies or another release of Berth can be
compared with it: codes and effects, never sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from analysis.admission_preview import AdmittedPod
from analysis.replay import effects
from analysis.replay.effects import EditEffect
from kube.pod import field_of
from policies.verdict import AuditOutcome, Verdict


class DenialReason(NamedTuple):
    """Why a pod is denied."""

    code: str
    rule: str
    policies: tuple[str, ...] = ()


class AuditedChange(NamedTuple):
    """What one policy in Audit or Warn would have done."""

    codes: frozenset[str]
    """Of the denials."""
    effects: frozenset[EditEffect] | None
    """Of the whole patch; None if the record has only the number of its operations."""

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(field_of(effect.path) for effect in self.effects or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDecision:
    """What was decided of one pod, as far as it is known."""

    denied: bool = False
    reasons: tuple[DenialReason, ...] | None = ()
    """None: the record does not say why."""
    effects: Mapping[EditEffect, tuple[str, ...]] | None = field(default_factory=dict)
    """With the policies that wrote each, where they are known. None: the record does not say what was written."""
    audit_outcomes: Mapping[str, AuditedChange] | None = field(default_factory=dict)
    """By policy: those that would do nothing are not among them. None: the record does not say."""
    whole: bool = True
    """False if the record left out policies for want of room."""
    patch: tuple[Mapping[str, Any], ...] = ()

    @property
    def word(self) -> str:
        """The decision in one word."""
        return "denied" if self.denied else "edited" if self.effects else "admitted"


def of_admitted(judged: AdmittedPod) -> RecordedDecision:
    """Return what both phases together decide."""
    verdict, violations = judged.mutate, judged.violations
    written = {} if violations else effects.of_edits(verdict.edits)
    return RecordedDecision(
        denied=bool(violations),
        reasons=tuple(DenialReason(one.code, one.rule, one.policies) for one in violations),
        effects=written,
        audit_outcomes=_audit_outcomes(verdict),
        whole=not verdict.uncounted,
        patch=() if violations else verdict.patch,
    )


def _audit_outcomes(verdict: Verdict) -> dict[str, AuditedChange]:
    base = frozenset(effects.of_patch(verdict.patch))
    found = {one.policy: _audited(one) for one in verdict.audit_outcomes}
    return {policy: one for policy, one in found.items() if does_something(one, base)}


def _audited(outcome: AuditOutcome) -> AuditedChange:
    return AuditedChange(frozenset(one.code for one in outcome.violations), frozenset(effects.of_patch(outcome.patch)))


def does_something(outcome: AuditedChange, base: frozenset[EditEffect]) -> bool:
    """Return whether a policy would deny, or write other than what is written without it (``base``)."""
    return bool(outcome.codes) or (outcome.effects is None or outcome.effects != base)
