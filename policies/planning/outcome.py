"""What comes of a pod, a claim or a workload under one set of policies, and what each policy in Audit or Warn would add alone to
those that are enforced."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kube.tree import Path
from policies.offers.constraints import Compiled
from policies.verdict import LARGE, MOST_AUDITED, AuditOutcome, Edit, Remark, Verdict, Violation

FEW = 8
"""The number of policies under which each item costs about as much as under none."""


class PolicyOutcome(NamedTuple):
    """What one set of policies does together."""

    edits: tuple[Edit, ...] = ()
    """None of them is made if there are violations."""
    violations: tuple[Violation, ...] = ()
    remarks: tuple[Remark, ...] = ()
    patch: tuple[dict[str, Any], ...] = ()


Policies = tuple[Compiled, ...]


def enforced_of(matched: Sequence[Compiled]) -> Policies:
    """Return the policies in Enforce, in order."""
    return tuple(compiled for compiled in matched if compiled.mode == "Enforce")


def evaluate_under(
    matched: Sequence[Compiled], enforced: Policies, evaluate: Callable[[Policies], PolicyOutcome], size: int | None
) -> Verdict:
    """Return the verdict under the policies in Enforce among those that match. ``size``: the items of the object; None if the other
    policies are not evaluated."""
    outcome = evaluate(enforced)
    audited, uncounted = audit_outcomes(matched, outcome, evaluate, size) if size is not None else ((), 0)
    return Verdict(
        edits=outcome.edits,
        violations=outcome.violations,
        remarks=outcome.remarks,
        audit_outcomes=audited,
        uncounted=uncounted,
        matched=tuple(c.id for c in matched),
        patch=outcome.patch,
    )


def audit_outcomes(
    matched: Sequence[Compiled], enforced: PolicyOutcome, evaluate: Callable[[Policies], PolicyOutcome], size: int
) -> tuple[tuple[AuditOutcome, ...], int]:
    """Return the outcome of each Audit or Warn policy alone on top of the enforced ones, and the number that were not evaluated.

    ``matched``: all policies that match, in order. ``enforced``: the outcome of those in Enforce. ``evaluate``: returns the
    outcome of a set of policies. ``size``: the object's items (``policies.work_budget``).
    """
    audited = [compiled for compiled in matched if compiled.mode != "Enforce"]
    if not audited:
        return (), 0
    most = most_audited(size, len(matched) - len(audited))
    identities, places = {_edit_identity(edit) for edit in enforced.edits}, [(edit, _place(edit)) for edit in enforced.edits]
    denied = {violation.key for violation in enforced.violations}
    outcomes = []
    for policy in audited[:most]:
        outcome = evaluate(tuple(compiled for compiled in matched if compiled.mode == "Enforce" or compiled is policy))
        edits = () if outcome.violations else outcome.edits
        kept = {_place(edit) for edit in edits}
        outcomes.append(
            AuditOutcome(
                policy=policy.id,
                mode=policy.mode,
                edits=tuple(edit for edit in edits if _edit_identity(edit) not in identities),
                dropped=() if outcome.violations else tuple(edit for edit, place in places if place not in kept),
                violations=tuple(violation for violation in outcome.violations if violation.key not in denied),
                remarks=tuple(remark for remark in outcome.remarks if policy.id in remark.policies),
                patch=() if outcome.violations else outcome.patch,
            )
        )
    return tuple(outcomes), max(0, len(audited) - most)


def most_audited(size: int, enforced: int) -> int:
    """Return how many Audit and Warn policies are evaluated: fewer for an object that is large, or under many enforced
    policies, since sixteen evaluations of it would delay all other requests."""
    work = size * max(FEW, enforced) // FEW
    return MOST_AUDITED if work <= LARGE else max(1, MOST_AUDITED * LARGE // work)


def _edit_identity(edit: Edit) -> tuple[str, Path, str]:
    """Return what an edit does, whoever asks for it."""
    return edit.op, edit.path, json.dumps(edit.value, sort_keys=True)


def _place(edit: Edit) -> tuple[Path, object]:
    """Return what an edit sets, whatever it sets it to: of an item that is appended, what the item is about."""
    return edit.path, edit.value.get("key") if edit.path[-1] == "-" and isinstance(edit.value, dict) else None
