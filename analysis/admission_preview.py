"""Evaluates one pod as the two webhooks would, one after the other, to preview an admission.

A created pod passes mutate, then validate with the patch applied. An updated pod passes validate only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kube.pod import Pod
from kube.tree import apply_patch
from policies.engine import evaluate
from policies.request import Request
from policies.rules.requests_match_limits import undecodable
from policies.state.snapshot import Facts
from policies.verdict import Remark, Verdict, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The result of both phases for one pod."""

    mutate: Verdict
    """the answer at /mutate"""
    violations: tuple[Violation, ...]
    """the violations of the phase that denied the pod"""
    remarks: tuple[Remark, ...]
    """the remarks of both phases, each once"""
    judged: bool
    """False if the pod requests no accelerator"""


Applier = Callable[[Any, Iterable[Mapping[str, Any]]], Any]
"""Returns a tree after the operations of a JSON Patch; the given tree stays as it was."""


def preview_admission(request: Request, facts: Facts, apply: Applier = apply_patch) -> Judgement:
    """Evaluate both phases for one pod; the second only if the first admits it. Raises PodError as
    ``evaluate`` does.

    ``apply`` applies the patch of the first phase, as the API server does before the second. A pod that the
    API server can't decode, which can happen with one from a template, is denied even if no policy denies
    it.
    """
    mutate = _decoded(request, evaluate(replace(request, phase="mutate"), facts), facts)
    if request.operation == "CREATE" and (not mutate.judged or mutate.violations):
        return Judgement(mutate=mutate, violations=mutate.violations, remarks=mutate.remarks, judged=mutate.judged)
    final = evaluate(_final(request, mutate, apply), facts)
    remarks = tuple(dict.fromkeys((*mutate.remarks, *final.remarks)))
    return Judgement(mutate=mutate, violations=final.violations, remarks=remarks, judged=final.judged)


def _decoded(request: Request, verdict: Verdict, facts: Facts) -> Verdict:
    if request.operation != "CREATE" or not verdict.judged:
        return verdict
    violated = {violation.key for violation in verdict.violations}
    wrong = tuple(v for v in undecodable(Pod(request.pod), facts.snapshot) if v.key not in violated)
    return replace(verdict, violations=(*verdict.violations, *wrong), edits=(), patch=()) if wrong else verdict


def _final(request: Request, mutate: Verdict, apply: Applier) -> Request:
    """Return the request at /validate, for the edited pod; an update is not edited."""
    edited = request.operation == "CREATE" and mutate.patch
    return replace(request, phase="validate", pod=apply(request.pod, mutate.patch) if edited else request.pod)
