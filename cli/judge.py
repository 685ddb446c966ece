"""Judging a manifest as the two webhooks would, one after the other, and what it then looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cli.manifests import Manifest, Subject
from cli.project_edits import project
from policies import both_phases, claims
from policies.actor import FRACTIONS
from policies.both_phases import Judgement
from policies.edit_tree import set_at, value_at
from policies.snapshot import Facts, Snapshot
from policies.verdict import Edit, Path, Verdict, Would
from policies.workloads import parts
from policies.workloads.held import Held, held


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Judgement):
    """What both phases said about one pod of a manifest."""

    subject: Subject

    @property
    def edits(self) -> tuple[Edit, ...]:
        """What is written: nothing when the pod is refused, or only updated."""
        return () if self.violations or self.subject.review.operation != "CREATE" else self.mutate.edits

    @property
    def unshown(self) -> dict[Path, Any]:
        """What the edits make of fields of the pod for which the manifest has none."""
        subject = self.subject
        left = dict.fromkeys(_field_of(edit.path) for edit in parts.unshown(self.edits, subject.parts))
        after = project(subject.written, self.edits) if left else None
        return {path: value_at(after, path) for path in left}

    @property
    def would(self) -> tuple[Would, ...]:
        return self.mutate.would


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A manifest judged."""

    manifest: Manifest
    pods: tuple[Judged, ...] = ()
    claim: Verdict | None = None
    """of a claim, or of a template of claims"""
    held: tuple[Held, ...] = ()
    """every accelerator that the object names anywhere"""
    unjudged: tuple[Held, ...] = ()
    """those of them that no pod asks for of which Berth knows"""
    after: Any = None
    """the object as admitted; the same object as ``manifest.value`` where nothing changed"""

    @property
    def refused(self) -> bool:
        return any(pod.violations for pod in self.pods) or bool(self.claim and self.claim.violations)

    @property
    def edits(self) -> int:
        return 0 if self.refused else sum(len(pod.edits) for pod in self.pods)


def judge(manifest: Manifest, snapshot: Snapshot) -> Outcome:
    """Judges every pod of ``manifest``. An object of which one pod is refused is shown as it was."""
    facts = snapshot.facts_for(manifest.namespace)
    pods = tuple(judge_pod(subject, facts) for subject in manifest.subjects)
    refused, edited = any(pod.violations for pod in pods), any(pod.edits for pod in pods)
    found = () if manifest.fact else held(manifest.value, snapshot)
    return Outcome(
        manifest=manifest,
        pods=pods,
        claim=None if manifest.claim is None else claims.judge(manifest.claim, facts),
        held=found,
        unjudged=tuple(one for one in found if not any(_reads(subject, one.path) for subject in manifest.subjects)),
        after=_edited(manifest.value, pods) if edited and not refused else manifest.value,
    )


def judge_pod(subject: Subject, facts: Facts) -> Judged:
    """Both phases for one pod."""
    both = both_phases.judge(subject.review.request("mutate"), facts)
    return Judged(subject=subject, mutate=both.mutate, violations=both.violations, remarks=both.remarks, judged=both.judged)


def _field_of(path: Path) -> Path:
    """The field of a pod, or of a container, in which an edit is."""
    return path[:4] if path[1] in ("containers", "initContainers") else path[:2]


def _reads(subject: Subject, path: Path) -> bool:
    """Whether what stands at a path of the object is read of this pod."""
    return any(_is_read(found) for found in parts.in_pod(path, subject.parts))


def _is_read(path: Path) -> bool:
    match path:
        case ("spec", "containers" | "initContainers", int(), "resources", "limits" | "requests", _):
            return True
        case ("spec", "resourceClaims", *_):
            return True
        case ("metadata", "annotations", name):
            return name in FRACTIONS
    return False


def _edited(value: Any, pods: tuple[Judged, ...]) -> Any:
    for pod in pods:
        if pod.edits and pod.subject.is_template:
            value = _put(value, pod.subject.template, project(value_at(value, pod.subject.template), pod.edits))
        elif pod.edits:
            before = pod.subject.written
            value = parts.written(value, before, project(before, pod.edits), pod.subject.parts)
    return value


def _put(value: Any, path: Path, inner: Any) -> Any:
    return set_at(value, path, inner) if path else inner
