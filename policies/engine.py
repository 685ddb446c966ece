"""``evaluate``: one request against one namespace's facts. The plan is made once, then the rules run in order.

Edits come only from policies in Enforce. Each Audit or Warn policy is evaluated alone on top of the enforced set, on
the pod as it came: what it would have done is the difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from policies import applied, choose, plan, work
from policies.actor import FRACTIONS, MIRRORED
from policies.compiled import Compiled
from policies.extract import extract
from policies.plan import Asked, Plan
from policies.pod import Pod, Raw
from policies.request import Request
from policies.rules import RULES
from policies.snapshot import Facts
from policies.verdict import Edit, Path, Remark, Verdict, Violation, Would

__all__ = ["Request", "evaluate"]

MOST_AUDITED = 16
"""Audit and Warn policies evaluated per pod: each costs a whole evaluation; the rest are counted (design section 2)"""
LARGE = 40
"""items (``policies.work``) of the largest pod on which all sixteen are tried: ten containers with a GPU and four terms of four"""
ON_UPDATE = tuple(rule for rule in RULES if rule.name == "tolerations")
"""what an update is judged by: tolerations are all that it may add to what Berth judges (design section 6)"""
_REFUSES = {
    "left": frozenset({"BERTH-121", "BERTH-122"}),
    "mismatch": frozenset({"BERTH-101", "BERTH-102"}),
    "node": frozenset({"BERTH-124"}),
    "counts": frozenset({"BERTH-111", "BERTH-112"}),
}
"""what an actor that may not be refused for everything may still be refused for (design section 4)"""


def evaluate(request: Request, facts: Facts) -> Verdict:
    """The verdict on one pod. Raises PodError where the pod is not shaped like one."""
    pod = Pod(extract(request.pod, facts.reads))
    asked = plan.accelerators(pod, facts.snapshot)
    if not (asked or pod.claims or any(name in pod.annotations for name in FRACTIONS) or _misspelt(pod, facts)):
        return Verdict(judged=False)
    matched = plan.matching(request, facts, pod, asked)
    enforced = tuple(c for c in matched if c.mode == "Enforce")
    edits, violations, remarks = _one(request, facts, pod, enforced, asked)
    standing = _standing(request, facts, pod, enforced)
    would: tuple[Would, ...] = ()
    uncounted = 0
    # No mutating webhook is called for an update: what would be refused of it is told where it is judged.
    if (request.operation == "UPDATE" or request.phase == "mutate") and len(enforced) < len(matched):
        would, uncounted = _would(request, facts, pod, matched, asked, edits, violations, standing)
    return Verdict(
        edits=edits,
        violations=violations,
        remarks=remarks,
        would=would,
        uncounted=uncounted,
        matched=tuple(c.policy.id for c in matched),
        patch=_patch(request, facts, pod, edits, violations, standing),
    )


def _misspelt(pod: Pod, facts: Facts) -> bool:
    return any(name in facts.snapshot.catalog.misspellings for container in pod.containers for name in container.resource_names)


def _standing(request: Request, facts: Facts, pod: Pod, enforced: tuple[Compiled, ...]) -> list[applied.Entry]:
    """What the pod brings of ``berth.dev/applied`` and the policies in force write themselves."""
    if applied.APPLIED not in pod.annotations or request.phase != "mutate" or request.operation == "UPDATE":
        return []

    def write(raw: Raw) -> tuple[Edit, ...]:
        before = Pod(raw)
        return _one(request, facts, before, enforced, plan.accelerators(before, facts.snapshot))[0]

    return applied.true_entries(pod.raw, pod.annotations[applied.APPLIED], facts.snapshot.catalog.whole, write)


def _patch(
    request: Request,
    facts: Facts,
    pod: Pod,
    edits: tuple[Edit, ...],
    violations: tuple[Violation, ...],
    standing: list[applied.Entry],
) -> tuple[dict[str, object], ...]:
    """Nothing for a pod that is refused, or only updated."""
    if violations or request.operation == "UPDATE":
        return ()
    came = pod.annotations.get(applied.APPLIED)
    if not edits and came is None:
        return ()
    return applied.finish(pod.raw, edits, came, standing)


def _one(
    request: Request, facts: Facts, pod: Pod, policies: tuple[Compiled, ...], asked: tuple[Asked, ...]
) -> tuple[tuple[Edit, ...], tuple[Violation, ...], tuple[Remark, ...]]:
    """Edits, violations and remarks under one set of policies."""
    if not policies:
        return (), (), ()
    made = plan.make(facts, pod, policies, asked)
    if made.actor is MIRRORED:
        return (), (), ()
    if request.operation == "UPDATE":
        # whoever the pod is: most that are updated have a node by now, and no controller adds such a toleration later
        violations = tuple(violation for rule in ON_UPDATE for violation in rule.check(request, made))
        return (), violations, tuple(r for r in made.remarks if r.rule in {rule.name for rule in ON_UPDATE})
    edits: tuple[Edit, ...] = ()
    if request.phase == "mutate":
        choose.choose(made)
        edits = tuple(edit for rule in RULES for edit in rule.mutate(request, made))
    violations = tuple(_check(request, made))
    return (() if violations else edits), violations, tuple(made.remarks) if request.phase == "mutate" else ()


def _check(request: Request, made: Plan) -> Iterator[Violation]:
    """Every violation that this actor may be refused for; the others are said as remarks."""
    refuses = made.actor.refuses
    codes = frozenset[str]().union(*(_REFUSES.get(r, frozenset()) for r in refuses))
    for rule in RULES:
        for violation in rule.check(request, made):
            if "all" in refuses or violation.code in codes:
                yield violation
            else:
                text = f"{violation.fact}; {violation.fix} (not refused: it is {' and '.join(made.actor.names)})"
                made.remark(violation.code, text, violation.rule, violation.policies)


def _would(
    request: Request,
    facts: Facts,
    pod: Pod,
    matched: tuple[Compiled, ...],
    asked: tuple[Asked, ...],
    edits: tuple[Edit, ...],
    violations: tuple[Violation, ...],
    standing: list[applied.Entry],
) -> tuple[tuple[Would, ...], int]:
    """Each Audit or Warn policy alone on top of the enforced ones."""
    softer = [c for c in matched if c.mode != "Enforce"]
    done, refused = {_deed(e) for e in edits}, {(v.code, v.fact) for v in violations}
    most = _most_audited(pod) if softer else 0
    out = []
    for compiled in softer[:most]:
        with_it = tuple(c for c in matched if c.mode == "Enforce" or c is compiled)
        more_edits, more_violations, remarks = _one(request, facts, pod, with_it, asked)
        out.append(
            Would(
                policy=compiled.policy.id,
                mode=compiled.mode,
                edits=tuple(e for e in more_edits if _deed(e) not in done),
                violations=tuple(v for v in more_violations if (v.code, v.fact) not in refused),
                remarks=tuple(r for r in remarks if compiled.policy.id in r.policies),
                patch=_patch(request, facts, pod, more_edits, more_violations, standing),
            )
        )
    return tuple(out), max(0, len(softer) - most)


def _most_audited(pod: Pod) -> int:
    """Fewer for a pod that is large: sixteen evaluations of it would hold up everybody else's."""
    size = work.items(pod.raw)
    return MOST_AUDITED if size <= LARGE else MOST_AUDITED * LARGE // size


def _deed(edit: Edit) -> tuple[str, Path, str]:
    """What an edit does, whoever asks for it."""
    return edit.op, edit.path, json.dumps(edit.value, sort_keys=True)
