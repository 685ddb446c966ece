"""Judging of a manifest by the two webhooks, one after the other, and the manifest as admitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple

from analysis.admission.manifests import Manifest, ManifestPod
from analysis.admission.namespace_limits import fill_amounts, find_refusals, refusal_remarks
from analysis.admission.queue import label_pods, of_workload, with_ignored, with_remarks
from analysis.admission.template_edits import project
from analysis.admission_preview import Admission, AdmittedPod
from analysis.kueue.scheduler_limits import QueuedTemplate, limit_remarks
from analysis.reviews import audience
from kube.namespace_limits.refusal import Refusal
from kube.pod import CONTAINERS
from kube.tree import Path, TreePatch, dotted, set_at, value_at
from policies.messages import Place
from policies.pods.fractions import FRACTIONS
from policies.verdict import Edit, Remark, Verdict
from policies.workloads import parts
from policies.workloads.held import HeldAccelerator, find_held


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResult(AdmittedPod):
    """What becomes of one pod of a manifest."""

    subject: ManifestPod
    refusals: tuple[Refusal, ...] = ()
    """What ResourceQuotas and LimitRanges refuse of it; ``remarks`` have them as well."""

    @property
    def unshown(self) -> dict[Path, Any]:
        """The values after the edits of those pod fields for which the manifest has no field."""
        subject = self.subject
        left = dict.fromkeys(_field_of(edit.path) for edit in parts.unshown(self.edits, subject.parts))
        after = project(subject.written, self.edits) if left else None
        return {path: value_at(after, path) for path in left}


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestResult:
    """A judged manifest."""

    manifest: Manifest
    pods: tuple[PodResult, ...] = ()
    claim: Verdict | None = None
    """The verdict on a ResourceClaim or ResourceClaimTemplate."""
    held: tuple[HeldAccelerator, ...] = ()
    """Every accelerator that the object names anywhere."""
    unjudged: tuple[HeldAccelerator, ...] = ()
    """Those of ``find_held`` that none of the judged pods requests."""
    queue: Verdict | None = None
    """The verdict on the queue of a workload; None if policies say nothing of it."""
    after: Any = None
    """The object as admitted; the same object as ``manifest.value`` if nothing changed."""

    @property
    def denied(self) -> bool:
        others = (verdict.violations for verdict in (self.claim, self.queue) if verdict is not None)
        return any(pod.violations for pod in self.pods) or any(others)

    @property
    def edits(self) -> int:
        own = len(self.queue.edits) if self.queue is not None else 0
        return 0 if self.denied else own + sum(len(pod.edits) for pod in self.pods) + len(self.claim_edits)

    @property
    def claim_edits(self) -> tuple[Edit, ...]:
        """The edits of a claim or template: none if it is denied."""
        return () if self.claim is None or self.claim.violations else self.claim.edits


class AuthorWarning(NamedTuple):
    """One remark that the author of an object should read."""

    template: Path
    """Of the pod template that it is about; () of the object itself, or of a pod."""
    remark: Remark
    place: Place = dotted
    """How to print paths of the pod."""

    @property
    def text(self) -> str:
        """The sentence with its code."""
        return f"{self.remark.code}: {self.remark.text_at(self.place)}"


def author_warnings(outcome: ManifestResult) -> Iterator[AuthorWarning]:
    """Yield what admission tells the author of an object without denying it, in the order of ``berth try``."""
    for verdict, value in ((outcome.claim, outcome.manifest.value), (outcome.queue, {})):
        if verdict is not None:
            yield from (AuthorWarning((), remark) for remark in audience.warned(verdict.remarks, verdict.violations, value))
    for pod in outcome.pods:
        yield from pod_warnings(pod)


def pod_warnings(pod: PodResult) -> Iterator[AuthorWarning]:
    """Yield what admission tells the author of a pod."""
    place = place_of(pod)
    for remark in audience.warned(pod.remarks, pod.violations, pod.subject.review.pod):
        yield AuthorWarning(pod.subject.template, remark, place)


def place_of(pod: PodResult) -> Place:
    """Return how to print paths of the pod: as paths of the manifest if the pod does not stand in it in one piece."""
    return dotted if pod.subject.is_template else partial(parts.placed, parts=pod.subject.parts)


def admit_manifest(manifest: Manifest, admission: Admission) -> ManifestResult:
    """Return what becomes of every pod of ``manifest``. If one pod is denied, ``after`` is the unchanged object."""
    snapshot = admission.snapshot
    queue = of_workload(manifest, snapshot)
    subjects = fill_amounts(label_pods(manifest, queue, snapshot), snapshot.cluster)
    pods = tuple(_pod(manifest, subject, admission) for subject in subjects)
    queue = with_ignored(manifest, queue, snapshot) if any(pod.is_evaluated for pod in pods) else queue
    limits = limit_remarks(manifest.value, [QueuedTemplate(pod.subject.template, pod.pod) for pod in pods], snapshot.cluster)
    queue = with_remarks(queue, tuple(limits))
    denied = any(pod.violations for pod in pods) or bool(queue and queue.violations)
    edited, own = any(pod.edits for pod in pods), queue.edits if queue is not None else ()
    unknown = not manifest.subjects and (not manifest.known or bool(manifest.note))
    found = () if manifest.fact else find_held(manifest.value, snapshot, unknown=unknown)
    claim = None if manifest.claim is None else admission.of(manifest.claim, manifest.namespace)
    return ManifestResult(
        manifest=manifest,
        pods=pods,
        claim=claim,
        held=found,
        unjudged=tuple(one for one in found if not any(_reads(subject, one.path) for subject in manifest.subjects)),
        queue=queue,
        after=_edited(_with(manifest.value, own), pods) if (edited or own) and not denied else _with_selectors(manifest.value, claim),
    )


def _with_selectors(value: Any, claim: Verdict | None) -> Any:
    """Return a claim or template with its edits, without the record of them; any other object as it is."""
    return value if claim is None or claim.violations else _with(value, claim.edits)


def _with(value: Any, edits: Sequence[Edit]) -> Any:
    """Return an object with these edits, without the record of them; the same object if there are none."""
    if not edits:
        return value
    patch = TreePatch(value)
    for edit in edits:
        patch.apply(edit)
    return patch.tree


def _pod(manifest: Manifest, subject: ManifestPod, admission: Admission) -> PodResult:
    pod = admission.of(subject.review)
    refusals = find_refusals(manifest, subject, pod.pod, admission.snapshot.cluster)
    result = PodResult(subject=subject, refusals=refusals, **{field.name: getattr(pod, field.name) for field in fields(pod)})
    return replace(result, remarks=(*pod.remarks, *refusal_remarks(refusals)))


def _field_of(path: Path) -> Path:
    """Return the path of the pod or container field that contains an edit."""
    return path[:4] if path[1] in CONTAINERS else path[:2]


def _reads(subject: ManifestPod, path: Path) -> bool:
    """Return whether judging this pod reads the value at a path of the object."""
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


def _edited(value: Any, pods: tuple[PodResult, ...]) -> Any:
    for pod in pods:
        if pod.edits and pod.subject.is_template:
            value = _put(value, pod.subject.template, project(value_at(value, pod.subject.template), pod.edits))
        elif pod.edits:
            before = pod.subject.written
            value = parts.write_parts(value, before, project(before, pod.edits), pod.subject.parts)
    return value


def _put(value: Any, path: Path, inner: Any) -> Any:
    return set_at(value, path, inner) if path else inner
