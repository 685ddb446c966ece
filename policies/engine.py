"""``evaluate``: one request against one namespace's facts. The plan is made once, then the rules run in
order.

Edits come only from policies in Enforce. Each Audit or Warn policy is evaluated alone on top of the enforced
set, on the pod as it arrived: the difference is what it would have done.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from kube.pod import Pod
from kube.tree import Path, Raw
from policies import messages, work_budget
from policies.admitted import holding
from policies.messages import OF_EDITS, phrase
from policies.offers.constraints import Compiled
from policies.patch import applied, valid_entries
from policies.patch.valid_entries import ValidEntries
from policies.planning import defaults, plan
from policies.planning.plan import Plan, ReviewedPod
from policies.pods import updates
from policies.pods.permissions import annotated_fraction
from policies.pods.projection import extract
from policies.request import Request
from policies.rules import RULES
from policies.rules.device_counts import UNCOUNTED, UNKNOWN
from policies.state.snapshot import Facts
from policies.verdict import LARGE, MOST_AUDITED, MOST_FOUND, NOTHING, AuditOutcome, Edit, Remark, Verdict, Violation

__all__ = ["Request", "arrived", "evaluate"]

FEW = 8
"""The number of policies under which each item costs about as much as under none."""
MUTATES = tuple(rule.mutate for rule in RULES if rule.mutate is not None)
CHECKS = tuple(rule.check for rule in RULES if rule.check is not None)
UPDATE_CHECKS = tuple(rule.check_update for rule in RULES if rule.check_update is not None)
ADMITTED_CHECKS = tuple(rule.check_admitted for rule in RULES if rule.check_admitted is not None)


def evaluate(request: Request, facts: Facts, read: Raw | None = None) -> Verdict:
    """Return the verdict on one pod. ``read``: its projection (``projection.extract``), if that was made
    before. Raises PodError if the pod is not shaped like one."""
    pod = updates.as_asked(Pod(extract(request.pod, facts.reads) if read is None else read), request.old_pod)
    subject = plan.review_pod(request, facts, pod)
    if not (subject.devices.asked or pod.claims or annotated_fraction(pod) or _misspelt(pod, facts)):
        return Verdict(judged=False)
    matched = subject.may_match
    enforced = tuple(c for c in matched if c.mode == "Enforce")
    edits, violations, remarks = _one(facts, subject, enforced)
    entries = _valid_entries(facts, subject, enforced)
    is_admitted = _admits(request, violations)
    audit_outcomes: tuple[AuditOutcome, ...] = ()
    uncounted = 0
    # No mutating webhook is called for an update: what would be denied of it is told where it is judged.
    if (request.operation == "UPDATE" or request.phase == "mutate") and len(enforced) < len(matched):
        audit_outcomes, uncounted = _audit_outcomes(facts, subject, edits, violations, entries)
    return Verdict(
        edits=edits,
        violations=violations,
        remarks=(*remarks, *(remark for check in ADMITTED_CHECKS if is_admitted for remark in check(subject, facts.snapshot))),
        audit_outcomes=audit_outcomes,
        uncounted=uncounted,
        matched=tuple(c.policy.id for c in matched),
        patch=_patch(request, facts, pod, edits, violations, entries),
        holding=holding(subject, facts.snapshot) if is_admitted else NOTHING,
        missing=subject.devices.missing if any(violation.code in (UNCOUNTED, UNKNOWN) for violation in violations) else (),
    )


def _admits(request: Request, violations: tuple[Violation, ...]) -> bool:
    """Return whether the pod is created as it is now: /mutate has not the last word."""
    return request.phase == "validate" and request.operation == "CREATE" and not violations


def _misspelt(pod: Pod, facts: Facts) -> bool:
    return any(name in facts.snapshot.catalog.misspellings for container in pod.containers for name in container.resource_names)


def _valid_entries(facts: Facts, subject: ReviewedPod, enforced: tuple[Compiled, ...]) -> list[applied.Entry]:
    """Return the entries of ``berth.dev/applied`` that the pod arrives with and that the policies in force
    write themselves."""
    request = subject.request
    if applied.APPLIED not in subject.pod.annotations or request.phase != "mutate" or request.operation == "UPDATE":
        return []
    return _true(facts, subject, enforced).entries


def _true(facts: Facts, subject: ReviewedPod, enforced: tuple[Compiled, ...]) -> ValidEntries:
    def write(raw: Raw) -> tuple[Edit, ...]:
        before = Pod(raw)
        return _one(
            facts, plan.review_pod(subject.request, facts, before)._replace(may_match=subject.may_match, matches=subject.matches), enforced
        )[0]

    return valid_entries.find_valid_entries(subject.pod.raw, facts.snapshot.whole, write)


def arrived(request: Request, facts: Facts) -> Raw:
    """Return a stored pod as it arrived: without what the policies in force wrote into it, and without the
    record of that. The pod may be a projection.

    What the record does not say (it is cut past 1 KiB), and what policies wrote that are no longer in force,
    stays: it counts as the author's. Raises PodError if the pod is not shaped like one.
    """
    subject = plan.review_pod(request, facts, Pod(extract(request.pod, facts.reads)))
    enforced = tuple(c for c in subject.may_match if c.mode == "Enforce")
    return valid_entries.before(request.pod, _true(facts, subject, enforced), facts.snapshot.whole)


def _patch(
    request: Request,
    facts: Facts,
    pod: Pod,
    edits: tuple[Edit, ...],
    violations: tuple[Violation, ...],
    entries: list[applied.Entry],
) -> tuple[dict[str, object], ...]:
    """Return the patch; empty for a pod that is denied, or only updated."""
    if violations or request.operation == "UPDATE":
        return ()
    came = pod.annotations.get(applied.APPLIED)
    if not edits and came is None:
        return ()
    return applied.finish(pod.raw, edits, came, entries)


def _one(
    facts: Facts, subject: ReviewedPod, policies: tuple[Compiled, ...]
) -> tuple[tuple[Edit, ...], tuple[Violation, ...], tuple[Remark, ...]]:
    """Return edits, violations and remarks under one set of policies."""
    if not policies or subject.actor.mirror:
        return (), (), ()
    if subject.request.operation == "UPDATE" and not updates.asks_anew(subject.pod, subject.request.old_pod, facts.snapshot.queues):
        # whoever the pod is: most that are updated have a node by now, and no controller adds such a toleration later
        made = plan.make_plan(facts, subject, policies)
        return (), tuple(violation for check in UPDATE_CHECKS for violation in check(subject.request, made)), ()
    found = evaluate_policies(facts, subject, policies)
    remarks = found.remarks if subject.request.phase == "mutate" else ()
    if found.violations:  # nothing is edited then
        return (), found.violations, tuple(remark for remark in remarks if remark.code not in OF_EDITS)
    return found.edits, (), remarks


class PolicySetResult(NamedTuple):
    """What one set of policies finds in a pod that is to be created."""

    plan: Plan
    """With the defaults that were chosen, in the mutate phase."""
    edits: tuple[Edit, ...]
    """None of them is made if there are violations."""
    violations: tuple[Violation, ...]
    remarks: tuple[Remark, ...]


def evaluate_policies(facts: Facts, subject: ReviewedPod, policies: tuple[Compiled, ...]) -> PolicySetResult:
    """Make the plan, and let every rule write and judge by it."""
    request, made = subject.request, plan.make_plan(facts, subject, policies)
    edits: list[Edit] = []
    if request.phase == "mutate":
        made = defaults.choose(made)
    remarks = dict.fromkeys(made.remarks)  # in order, each once
    for one in (one for mutate in MUTATES for one in mutate(request, made)) if request.phase == "mutate" else ():
        if isinstance(one, Edit):
            edits.append(one)
        else:
            remarks.setdefault(one)
    violations: list[Violation] = []
    for found in _check(request, made):
        if isinstance(found, Remark):
            remarks.setdefault(found)
        else:
            violations.append(found)
            if len(violations) == MOST_FOUND:
                break
    return PolicySetResult(made, tuple(edits), tuple(violations), tuple(remarks))


def _check(request: Request, made: Plan) -> Iterator[Violation | Remark]:
    """Yield every violation that this actor may be denied for; the others, about its placement, become
    remarks."""
    spared = messages.spared(made.actor.placement)
    for check in CHECKS:
        for found in check(request, made):
            yield _spared(found, made) if isinstance(found, Violation) and found.code in spared else found


def _spared(violation: Violation, made: Plan) -> Remark:
    return Remark(
        code=violation.code,
        found=phrase("spared", fact=violation.found, fix=violation.advice, actor=made.actor.names),
        rule=violation.rule,
        policies=violation.policies,
        path=violation.path,
        fields=violation.fields,
    )


def _audit_outcomes(
    facts: Facts, subject: ReviewedPod, edits: tuple[Edit, ...], violations: tuple[Violation, ...], entries: list[applied.Entry]
) -> tuple[tuple[AuditOutcome, ...], int]:
    """Return the outcome of each Audit or Warn policy alone on top of the enforced ones, and the number
    that were not evaluated."""
    matched, pod = subject.may_match, subject.pod
    softer = [c for c in matched if c.mode != "Enforce"]
    done, denied = {_edit_identity(e) for e in edits}, {v.key for v in violations}
    most = _most_audited(pod, len(matched) - len(softer)) if softer else 0
    out = []
    for compiled in softer[:most]:
        with_it = tuple(c for c in matched if c.mode == "Enforce" or c is compiled)
        more_edits, more_violations, remarks = _one(facts, subject, with_it)
        identities, places = [_edit_identity(e) for e in more_edits], {_place(e) for e in more_edits}
        out.append(
            AuditOutcome(
                policy=compiled.policy.id,
                mode=compiled.mode,
                edits=tuple(e for e, identity in zip(more_edits, identities, strict=True) if identity not in done),
                dropped=() if more_violations else tuple(e for e in edits if _place(e) not in places),
                violations=tuple(v for v in more_violations if v.key not in denied),
                remarks=tuple(r for r in remarks if compiled.policy.id in r.policies),
                patch=_patch(subject.request, facts, pod, more_edits, more_violations, entries),
            )
        )
    return tuple(out), max(0, len(softer) - most)


def _most_audited(pod: Pod, enforced: int) -> int:
    """Return how many Audit and Warn policies are evaluated: fewer for a pod that is large, or under many
    policies, since sixteen evaluations of it would delay all other requests."""
    size = work_budget.items(pod.raw) * max(FEW, enforced) // FEW
    return MOST_AUDITED if size <= LARGE else max(1, MOST_AUDITED * LARGE // size)


def _edit_identity(edit: Edit) -> tuple[str, Path, str]:
    """Return what an edit does, whoever asks for it."""
    return edit.op, edit.path, json.dumps(edit.value, sort_keys=True)


def _place(edit: Edit) -> tuple[Path, object]:
    """Return what an edit sets, whatever it sets it to: of an item that is appended, what the item is about."""
    return edit.path, edit.value.get("key") if edit.path[-1] == "-" and isinstance(edit.value, dict) else None
