"""Judging a manifest as the two webhooks would, one after the other, and what it then looks like.

A pod is created: mutate, then validate on the pod with the patch applied. A pod is updated: validate only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cli.edit_tree import apply_patch, set_at, value_at
from cli.manifests import Manifest, Subject
from cli.project_edits import project
from policies.engine import evaluate
from policies.snapshot import Facts, Snapshot
from policies.verdict import Edit, Path, Remark, Verdict, Violation, Would
from webhook.review import Review


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What both phases said about one pod."""

    subject: Subject
    mutate: Verdict
    """the answer at /mutate"""
    violations: tuple[Violation, ...]
    remarks: tuple[Remark, ...]
    judged: bool
    """False where the pod asks for no accelerator"""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """What is written: nothing when the pod is refused, or only updated."""
        return () if self.violations or self.subject.review.operation != "CREATE" else self.mutate.edits

    @property
    def would(self) -> tuple[Would, ...]:
        return self.mutate.would


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A manifest judged."""

    manifest: Manifest
    pods: tuple[Judged, ...] = ()
    after: Any = None
    """the object as admitted; the same object as ``manifest.value`` where nothing changed"""

    @property
    def refused(self) -> bool:
        return any(pod.violations for pod in self.pods)

    @property
    def edits(self) -> int:
        return 0 if self.refused else sum(len(pod.edits) for pod in self.pods)


def judge(manifest: Manifest, snapshot: Snapshot) -> Outcome:
    """Judges every pod of ``manifest``. An object of which one pod is refused is shown as it was."""
    facts = snapshot.facts_for(manifest.namespace)
    pods = tuple(judge_pod(subject, facts) for subject in manifest.subjects)
    outcome = Outcome(manifest=manifest, pods=pods, after=manifest.value)
    if outcome.refused or not outcome.edits:
        return outcome
    return Outcome(manifest=manifest, pods=pods, after=_edited(manifest.value, pods))


def judge_pod(subject: Subject, facts: Facts) -> Judged:
    """Both phases for one pod; the second only if the first lets it pass."""
    asked = subject.review
    mutate = evaluate(asked.request("mutate"), facts)
    if asked.operation == "CREATE" and (not mutate.judged or mutate.violations):
        return Judged(subject=subject, mutate=mutate, violations=mutate.violations, remarks=mutate.remarks, judged=mutate.judged)
    final = evaluate(_final(asked, mutate).request("validate"), facts)
    remarks = tuple(dict.fromkeys((*mutate.remarks, *final.remarks)))
    return Judged(subject=subject, mutate=mutate, violations=final.violations, remarks=remarks, judged=final.judged)


def _final(asked: Review, mutate: Verdict) -> Review:
    """The review of the pod as edited; an update is not edited."""
    return replace(asked, pod=apply_patch(asked.pod, mutate.patch)) if asked.operation == "CREATE" and mutate.patch else asked


def _edited(value: Any, pods: tuple[Judged, ...]) -> Any:
    for pod in pods:
        if pod.edits:
            value = _put(value, pod.subject.template, project(value_at(value, pod.subject.template), pod.edits))
    return value


def _put(value: Any, path: Path, inner: Any) -> Any:
    return set_at(value, path, inner) if path else inner
