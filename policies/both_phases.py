"""One pod judged as the two webhooks would, one after the other, by whoever foretells an admission.

A pod is created: mutate, then validate on the pod with the patch applied. A pod is updated: validate only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from policies.edit_tree import apply_patch
from policies.engine import evaluate
from policies.pod import Pod
from policies.request import Request
from policies.rules.requests_match_limits import undecodable
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
    """Both phases for one pod; the second only if the first lets it pass. Raises PodError as ``evaluate`` does.

    A pod that the API server can't decode, as a template's can be, is refused by it, also where no policy says so.
    """
    mutate = _decoded(request, evaluate(replace(request, phase="mutate"), facts), facts)
    if request.operation == "CREATE" and (not mutate.judged or mutate.violations):
        return Judgement(mutate=mutate, violations=mutate.violations, remarks=mutate.remarks, judged=mutate.judged)
    final = evaluate(_final(request, mutate), facts)
    remarks = tuple(dict.fromkeys((*mutate.remarks, *final.remarks)))
    return Judgement(mutate=mutate, violations=final.violations, remarks=remarks, judged=final.judged)


def _decoded(request: Request, verdict: Verdict, facts: Facts) -> Verdict:
    if request.operation != "CREATE" or not verdict.judged:
        return verdict
    told = {violation.fact for violation in verdict.violations}
    wrong = tuple(v for v in undecodable(Pod(request.pod), facts.snapshot) if v.fact not in told)
    return replace(verdict, violations=(*verdict.violations, *wrong), edits=(), patch=()) if wrong else verdict


def _final(request: Request, mutate: Verdict) -> Request:
    """The request at /validate: for the pod as edited; an update is not edited."""
    edited = request.operation == "CREATE" and mutate.patch
    return replace(request, phase="validate", pod=apply_patch(request.pod, mutate.patch) if edited else request.pod)
