"""What comes of a pod, a review or a claim, as plain data that can be written down and compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Self

from analysis.admission.patch_applier import apply_patch
from kube.tree import pointer
from policies.claims import claim_verdict
from policies.claims.claim_request import ClaimRequest
from policies.engine import evaluate
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Edit, Remark, Verdict, Violation

PARTS: Mapping[str, type] = MappingProxyType({
    "edits": list, "patch": list, "violations": list, "remarks": list, "would": list, "validate": list,
    "unmatched": bool, "uncounted": int, "unjudged": bool, "bad": str,
})  # fmt: skip
"""The parts of an outcome, and what each is; empty ones are left out.

``edits``: what /mutate writes: op, path, value, rule, by (the policies). ``patch``: the whole patch, only where it is
asked for. ``violations``: why it is denied. ``remarks``: what is said beside. ``audit_outcomes``: per policy in Audit or Warn,
what Enforce would add. ``validate``: what /validate denies of the pod as edited. ``unmatched``: no policy is for it.
``uncounted``: policies in Audit or Warn past the sixteenth. ``unjudged``: it asks for no accelerator. ``bad``: the
sentence for a review that can't be judged.
"""


class Sentence(str):
    """A sentence as the author reads it, with its code."""

    code: str

    def __new__(cls, read: Violation | Remark) -> Self:
        made = super().__new__(cls, read)
        made.code = read.code
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDecision:
    """The outcome, and the policies that applied, without which none of their settings can matter."""

    outcome: Mapping[str, Any]
    matched: frozenset[str] = frozenset()
    is_evaluated: bool = True


def of_pod(request: Request, facts: NamespaceFacts, *, whole_patch: bool = False) -> CaseDecision:
    """Return what comes of a pod at /mutate and, if it is created and admitted there, at /validate."""
    verdict = evaluate(request, facts)
    found = plain_data(verdict)
    if whole_patch:
        found["patch"] = list(verdict.patch)
    if request.phase == "mutate" and request.operation == "CREATE" and verdict.is_evaluated and not verdict.violations:
        edited = apply_patch(request.pod, verdict.patch)
        denied = evaluate(replace(request, pod=edited, phase="validate"), facts).violations
        if denied:
            found["validate"] = [Sentence(v) for v in denied]
    return CaseDecision(outcome=found, matched=frozenset(verdict.matched), is_evaluated=verdict.is_evaluated)


def of_claim(request: ClaimRequest, facts: NamespaceFacts) -> CaseDecision:
    """Return what comes of the creation of a claim at /mutate and, if it is admitted there, at /validate."""
    verdict = claim_verdict.evaluate_claim(request, facts)
    shown = replace(
        verdict,
        audit_outcomes=tuple(outcome for outcome in verdict.audit_outcomes if outcome.violations or outcome.edits or outcome.remarks),
    )
    found = plain_data(shown)
    if request.phase == "mutate" and verdict.is_evaluated and not verdict.violations:
        edited = apply_patch(dict(request.made), verdict.patch)
        if denied := claim_verdict.evaluate_claim(replace(request, made=edited, phase="validate"), facts).violations:
            found["validate"] = [Sentence(v) for v in denied]
    return CaseDecision(outcome=found, matched=frozenset(verdict.matched), is_evaluated=verdict.is_evaluated)


def plain_data(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain data, without its patch."""
    if not verdict.is_evaluated:
        return {"unjudged": True}
    parts = {
        **_parts(verdict.edits, verdict.violations, verdict.remarks),
        "would": [
            {"policy": w.policy, "mode": w.mode, **_parts(w.edits, w.violations, w.remarks)} for w in verdict.audit_outcomes
        ],
    }  # fmt: skip
    unmatched = {} if verdict.matched else {"unmatched": True}
    uncounted = {"uncounted": verdict.uncounted} if verdict.uncounted else {}
    return {**{name: part for name, part in parts.items() if part}, **unmatched, **uncounted}


def _parts(edits: Sequence[Edit], violations: Iterable[Violation], remarks: Iterable[Remark]) -> dict[str, Any]:
    parts = {
        "edits": [_edit(e) for e in edits],
        "violations": [Sentence(v) for v in violations],
        "remarks": [Sentence(r) for r in remarks],
    }
    return {name: part for name, part in parts.items() if part}


def _edit(edit: Edit) -> dict[str, Any]:
    value = {} if edit.op == "remove" else {"value": edit.value}
    return {"op": edit.op, "path": pointer(edit.path), **value, "rule": edit.rule, "by": ", ".join(edit.policies)}
