"""Judging a manifest as the two webhooks would, one after the other, and what it then looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cli.manifests import Manifest, Subject
from cli.project_edits import project
from policies import both_phases
from policies.both_phases import Judgement
from policies.edit_tree import set_at, value_at
from policies.snapshot import Facts, Snapshot
from policies.verdict import Edit, Path, Would


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Judgement):
    """What both phases said about one pod of a manifest."""

    subject: Subject

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
    """Both phases for one pod."""
    both = both_phases.judge(subject.review.request("mutate"), facts)
    return Judged(subject=subject, mutate=both.mutate, violations=both.violations, remarks=both.remarks, judged=both.judged)


def _edited(value: Any, pods: tuple[Judged, ...]) -> Any:
    for pod in pods:
        if pod.edits:
            value = _put(value, pod.subject.template, project(value_at(value, pod.subject.template), pod.edits))
    return value


def _put(value: Any, path: Path, inner: Any) -> Any:
    return set_at(value, path, inner) if path else inner
