"""``evaluate``: one request against one namespace's facts. The plan is made once, then the rules run in order.

Edits come only from policies in Enforce. Each Audit or Warn policy is evaluated alone on top of the enforced set, on
the pod as it came: what it would have done is the difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from policies import applied, choose, chosen, devices, plan, work
from policies.actor import Placement, annotated_fraction
from policies.compiled import Compiled
from policies.extract import extract
from policies.plan import Plan, Subject
from policies.pod import Pod, Raw
from policies.request import Request
from policies.rules import RULES
from policies.rules.device_counts import UNCOUNTED
from policies.snapshot import Facts
from policies.verdict import Edit, Path, Remark, Verdict, Violation, Would

__all__ = ["Request", "evaluate"]

MOST_AUDITED = 16
"""Audit and Warn policies evaluated per pod: each costs a whole evaluation; the rest are counted (design section 2)"""
MOST_FOUND = 50
"""refusals of one pod that are told: an answer holds twenty, and a pod can be made that each of a hundred policies forbids hundreds of
times. It is refused all the same"""
FEW = 8
"""policies under which each item costs about as much as under none"""
LARGE = 30
"""items (``policies.work``) of the largest pod on which all sixteen are tried: six containers with a GPU and a term of six"""
ON_UPDATE = {rule.name: rule.check_update for rule in RULES if rule.check_update is not None}
"""what an update is judged by: what it may change of a pod is in ``policies.rules``"""
_PLACEMENT: Mapping[Placement, frozenset[str]] = {
    "none": frozenset(),
    "left": frozenset({"BERTH-121", "BERTH-122"}),
    "node": frozenset({"BERTH-124"}),
    "all": frozenset({"BERTH-121", "BERTH-122", "BERTH-123", "BERTH-124", "BERTH-125"}),
}
"""which refusals of a placement an actor may meet (design section 4); all others hold whoever writes the pod"""


def evaluate(request: Request, facts: Facts) -> Verdict:
    """The verdict on one pod. Raises PodError where the pod is not shaped like one."""
    pod = Pod(extract(request.pod, facts.reads))
    about = plan.subject(request, facts, pod)
    if not (about.devices.asked or pod.claims or annotated_fraction(pod) or _misspelt(pod, facts)):
        return Verdict(judged=False)
    matched = about.possible
    enforced = tuple(c for c in matched if c.mode == "Enforce")
    edits, violations, remarks = _one(facts, about, enforced)
    standing = _standing(facts, about, enforced)
    would: tuple[Would, ...] = ()
    uncounted = 0
    # No mutating webhook is called for an update: what would be refused of it is told where it is judged.
    if (request.operation == "UPDATE" or request.phase == "mutate") and len(enforced) < len(matched):
        would, uncounted = _would(facts, about, edits, violations, standing)
    return Verdict(
        edits=edits,
        violations=violations,
        remarks=remarks,
        would=would,
        uncounted=uncounted,
        matched=tuple(c.policy.id for c in matched),
        patch=_patch(request, facts, pod, edits, violations, standing),
        missing=about.devices.missing if any(violation.code == UNCOUNTED for violation in violations) else (),
    )


def _misspelt(pod: Pod, facts: Facts) -> bool:
    return any(name in facts.snapshot.catalog.misspellings for container in pod.containers for name in container.resource_names)


def _standing(facts: Facts, about: Subject, enforced: tuple[Compiled, ...]) -> list[applied.Entry]:
    """What the pod brings of ``berth.dev/applied`` and the policies in force write themselves."""
    pod, request = about.pod, about.request
    if applied.APPLIED not in pod.annotations or request.phase != "mutate" or request.operation == "UPDATE":
        return []

    def write(raw: Raw) -> tuple[Edit, ...]:
        before = Pod(raw)
        return _one(facts, replace(about, pod=before, devices=devices.read(before, facts)), enforced)[0]

    def whole(name: str) -> str | None:
        slice_ = facts.snapshot.resource(name)
        return facts.snapshot.catalog.whole.get(slice_.vendor) if slice_ is not None and slice_.kind == "mig" else None

    return applied.true_entries(pod.raw, pod.annotations[applied.APPLIED], whole, write)


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
    facts: Facts, about: Subject, policies: tuple[Compiled, ...]
) -> tuple[tuple[Edit, ...], tuple[Violation, ...], tuple[Remark, ...]]:
    """Edits, violations and remarks under one set of policies."""
    if not policies:
        return (), (), ()
    request, made = about.request, plan.make(facts, about, policies)
    if made.actor.mirror:
        return (), (), ()
    if request.operation == "UPDATE":
        # whoever the pod is: most that are updated have a node by now, and no controller adds such a toleration later
        violations = tuple(violation for check in ON_UPDATE.values() for violation in check(request, made))
        return (), violations, tuple(r for r in made.remarks if r.rule in ON_UPDATE)
    edits: tuple[Edit, ...] = ()
    if request.phase == "mutate":
        choose.choose(made)
        edits = tuple(edit for rule in RULES for edit in rule.mutate(request, made))
    violations = tuple(islice(_check(request, made), MOST_FOUND))
    if violations:  # nothing is edited then
        edits = ()
        made.remarks = dict.fromkeys(remark for remark in made.remarks if remark.code not in chosen.OF_EDITS)
    return edits, violations, tuple(made.remarks) if request.phase == "mutate" else ()


def _check(request: Request, made: Plan) -> Iterator[Violation]:
    """Every violation that this actor may be refused for; the others, of its placement, are said as remarks."""
    spared = _PLACEMENT["all"] - _PLACEMENT[made.actor.placement]
    for rule in RULES:
        for violation in rule.check(request, made):
            if violation.code not in spared:
                yield violation
            else:
                text = f"{violation.fact}; {violation.fix} (not refused: it is {' and '.join(made.actor.names)})"
                made.remark(violation.code, text, violation.rule, violation.policies)


def _would(
    facts: Facts, about: Subject, edits: tuple[Edit, ...], violations: tuple[Violation, ...], standing: list[applied.Entry]
) -> tuple[tuple[Would, ...], int]:
    """Each Audit or Warn policy alone on top of the enforced ones."""
    matched, pod = about.possible, about.pod
    softer = [c for c in matched if c.mode != "Enforce"]
    done, refused = {_deed(e) for e in edits}, {(v.code, v.fact) for v in violations}
    most = _most_audited(pod, len(matched) - len(softer)) if softer else 0
    out = []
    for compiled in softer[:most]:
        with_it = tuple(c for c in matched if c.mode == "Enforce" or c is compiled)
        more_edits, more_violations, remarks = _one(facts, about, with_it)
        out.append(
            Would(
                policy=compiled.policy.id,
                mode=compiled.mode,
                edits=tuple(e for e in more_edits if _deed(e) not in done),
                violations=tuple(v for v in more_violations if (v.code, v.fact) not in refused),
                remarks=tuple(r for r in remarks if compiled.policy.id in r.policies),
                patch=_patch(about.request, facts, pod, more_edits, more_violations, standing),
            )
        )
    return tuple(out), max(0, len(softer) - most)


def _most_audited(pod: Pod, enforced: int) -> int:
    """Fewer for a pod that is large, or under many policies: sixteen evaluations of it would hold up everybody else's."""
    size = work.items(pod.raw) * max(FEW, enforced) // FEW
    return MOST_AUDITED if size <= LARGE else max(1, MOST_AUDITED * LARGE // size)


def _deed(edit: Edit) -> tuple[str, Path, str]:
    """What an edit does, whoever asks for it."""
    return edit.op, edit.path, json.dumps(edit.value, sort_keys=True)
