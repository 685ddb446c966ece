"""One pod judged as the two webhooks would, one after the other, by whoever foretells an admission.

A pod is created: mutate, then validate on the pod with the patch applied. A pod is updated: validate only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from policies.edit_tree import apply_patch
from policies.engine import evaluate
from policies.request import Request
from policies.snapshot import Facts
from policies.verdict import Remark, Verdict, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What both phases said about one pod."""

    mutate: Verdict
    """the answer at /mutate"""
    violations: tuple[Violation, ...]
    """of the phase that refused it"""
    remarks: tuple[Remark, ...]
    """of both, each once"""
    judged: bool
    """False where the pod asks for no accelerator"""


def judge(request: Request, facts: Facts) -> Judgement:
    """Both phases for one pod; the second only if the first lets it pass. Raises PodError as ``evaluate`` does."""
    mutate = evaluate(replace(request, phase="mutate"), facts)
    if request.operation == "CREATE" and (not mutate.judged or mutate.violations):
        return Judgement(mutate=mutate, violations=mutate.violations, remarks=mutate.remarks, judged=mutate.judged)
    final = evaluate(_final(request, mutate), facts)
    remarks = tuple(dict.fromkeys((*mutate.remarks, *final.remarks)))
    return Judgement(mutate=mutate, violations=final.violations, remarks=remarks, judged=final.judged)


def _final(request: Request, mutate: Verdict) -> Request:
    """The request at /validate: for the pod as edited; an update is not edited."""
    edited = request.operation == "CREATE" and mutate.patch
    return replace(request, phase="validate", pod=apply_patch(request.pod, mutate.patch) if edited else request.pod)
