"""Judging of the queue of a workload, as the API server has it judged: the label first, then what is required, then its pods."""

from __future__ import annotations

from dataclasses import replace

from analysis.admission.manifests import Manifest, ManifestPod
from analysis.admission.patch_applier import apply_patch
from analysis.reviews import workload_review
from analysis.reviews.decoding import Unreadable
from analysis.reviews.review import ObjectRequest
from kube.tree import Raw
from policies.pods.queue_systems import KUEUE
from policies.rules.queues import words
from policies.state.snapshot import Snapshot
from policies.verdict import Remark, Verdict
from policies.workloads.in_queue import alone_in_kueue, in_kueue
from policies.workloads.templates import workload_of


def of_workload(manifest: Manifest, snapshot: Snapshot) -> Verdict | None:
    """Return the verdict on a workload, with its label if it gets one; None if nothing is to be said of it, or it can't be read."""
    if manifest.reviewed or not any(subject.template for subject in manifest.subjects):
        return None
    value = manifest.value
    asked = ObjectRequest(
        uid="",
        operation="CREATE",
        namespace=manifest.namespace,
        user="",
        api_version=str(value.get("apiVersion")),
        kind=str(value.get("kind")),
        name=manifest.name,
        value=value,
        dry_run=True,
    )
    try:
        given = workload_review.label_workload(asked, snapshot)
        after = replace(asked, value=apply_patch(value, given.patch)) if given.patch else asked
        judged = workload_review.evaluate_workload(after, snapshot)
    except Unreadable:
        return None
    if not (given.is_evaluated or judged.is_evaluated):
        return None
    remarks, audit_outcomes = (*given.remarks, *judged.remarks), given.audit_outcomes or judged.audit_outcomes
    return replace(given, violations=judged.violations, remarks=remarks, audit_outcomes=audit_outcomes, is_evaluated=True)


def with_ignored(manifest: Manifest, found: Verdict | None, snapshot: Snapshot) -> Verdict | None:
    """Return the verdict on a workload whose pods ask for an accelerator with the keys of its own that are ignored."""
    templates = [subject.template for subject in manifest.subjects if subject.template]
    ignored = words.of_workload(manifest.value, snapshot.catalog, templates) if templates and not manifest.reviewed else ()
    return with_remarks(found, ignored)


def with_remarks(verdict: Verdict | None, remarks: tuple[Remark, ...]) -> Verdict | None:
    """Return the verdict on a workload with these remarks as well."""
    if not remarks:
        return verdict
    verdict = verdict or Verdict(is_evaluated=False)
    return replace(verdict, remarks=(*verdict.remarks, *remarks))


def label_pods(manifest: Manifest, queue: Verdict | None, snapshot: Snapshot) -> tuple[ManifestPod, ...]:
    """Return the pods of an object as queue systems leave them: a workload's once it has the label that ``queue`` gives it.

    What came in a review is judged as it came.
    """
    if manifest.reviewed:
        return manifest.subjects
    value = manifest.value
    known = workload_of(snapshot.catalog, str(value.get("apiVersion")), str(value.get("kind")))
    name = next((str(edit.value) for edit in queue.edits if edit.path == KUEUE.path), "") if queue is not None else ""

    def left(pod: Raw) -> Raw:
        return alone_in_kueue(in_kueue(pod, known, name) if name and known is not None else pod, snapshot.queues)

    return tuple(replace(one, review=replace(one.review, pod=left(one.review.pod))) for one in manifest.subjects)
