"""Reviews of workloads: read, judged for their queues, answered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from analysis.kueue import places
from analysis.reviews import audience as warnings
from analysis.reviews import claim_review, review, workload_advice
from analysis.reviews.audit_annotations import audit_annotations
from analysis.reviews.decoding import Unreadable
from analysis.reviews.workload_advice import AROUND, Advised
from kube.pod import PodError
from kube.tree import Raw, map_at
from policies.document import InputError
from policies.pods.permissions import QUEUE_NAME
from policies.request import Phase
from policies.state.snapshot import Facts, Snapshot
from policies.verdict import Remark, Verdict
from policies.workloads.pods import describing
from policies.workloads.queues import queue_verdict, queued
from policies.workloads.queues.queued import MOST_TEMPLATES, QueuedWorkload, WorkloadTooLarge

_UNREAD = (InputError, PodError, WorkloadTooLarge)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadReview:
    """The fields that are read of an AdmissionReview of a workload."""

    asked: Advised
    old: Raw | None
    """The object before an update."""


def is_about(document: object) -> bool:
    """Return whether an AdmissionReview is of what may be a workload: no pod, and nothing of the group of claims."""
    request = document.get("request") if isinstance(document, dict) else None
    resource = request.get("resource") if isinstance(request, dict) else None
    if not isinstance(resource, dict) or resource.get("group") == claim_review.GROUP:
        return False
    return isinstance(resource.get("resource"), str) and (resource.get("group", ""), resource["resource"]) != ("", "pods")


def from_document(document: object) -> WorkloadReview:
    """Return the review of a document for which ``is_about`` holds. Raises ReviewError(400) and Unreadable."""
    asked = workload_advice.from_document(document)
    old = review.request_in(document).get("oldObject")
    return WorkloadReview(asked=asked, old=old if asked.operation == "UPDATE" and isinstance(old, dict) else None)


def evaluate_workload(one: WorkloadReview, snapshot: Snapshot) -> Verdict:
    """Judge a workload that is made or changed: what an update leaves as it was passes. Raises Unreadable."""
    made = _made(one.asked, one.asked.workload, snapshot)
    if made is None:
        return Verdict(judged=False)
    facts = snapshot.facts_for(one.asked.namespace)
    verdict, remarks = _queued(one, made, facts), _waiting(one, made, facts)
    if not remarks or verdict.violations:
        return verdict
    return replace(verdict, remarks=(*verdict.remarks, *remarks), judged=True)


def _queued(one: WorkloadReview, made: QueuedWorkload, facts: Facts) -> Verdict:
    """Return the verdict of policies on its queue. Raises Unreadable."""
    if not queue_verdict.speaks(facts, "validate"):
        return Verdict(judged=False)
    update = one.asked.operation == "UPDATE"
    try:
        return queue_verdict.evaluate_queue(made, facts, "validate", update=update, before=_before(one, made, facts))
    except _UNREAD as error:
        if not queue_verdict.requires(facts):
            return Verdict(judged=False)
        raise _unreadable(error) from None


def _waiting(one: WorkloadReview, made: QueuedWorkload, facts: Facts) -> tuple[Remark, ...]:
    """Return why a workload that is made, or moved to another queue of Kueue's, waits for ever."""
    queue, before = (map_at(value, "metadata", "labels").get(QUEUE_NAME) for value in (made.value, one.old))
    moved = one.asked.operation == "CREATE" or (one.old is not None and queue != before)
    return places.remarks(made.value, made.owner, facts, AROUND) if moved else ()


def _before(one: WorkloadReview, made: QueuedWorkload, facts: Facts) -> QueuedWorkload | None:
    """Return the workload before an update; None if that can't be read."""
    before = made.of(one.old) if one.old is not None else None
    try:
        if before is not None:
            queued.read_pods(before, facts)
    except _UNREAD:
        return None
    return before


def label_workload(one: WorkloadReview, snapshot: Snapshot) -> Verdict:
    """Return what defaults make of a new workload, and what policies in Audit and Warn would. One that can't be read is left as it is."""
    facts = snapshot.facts_for(one.asked.namespace)
    made = (
        _made(one.asked, one.asked.workload, snapshot)
        if one.asked.operation == "CREATE" and queue_verdict.speaks(facts, "mutate")
        else None
    )
    try:
        return queue_verdict.evaluate_queue(made, facts, "mutate") if made is not None else Verdict(judged=False)
    except _UNREAD:
        return Verdict(judged=False)


def _made(asked: Advised, workload: Raw, snapshot: Snapshot) -> QueuedWorkload | None:
    """Return the workload; None for a kind that describes no pods."""
    catalog = snapshot.catalog
    owner = describing(catalog, asked.api_version, asked.kind, name=asked.name, namespace=asked.namespace)
    return QueuedWorkload(user=asked.user, value=workload, catalog=catalog, owner=owner, around=AROUND) if owner is not None else None


def _unreadable(error: Exception) -> Unreadable:
    match error:
        case PodError():
            return Unreadable(f"a template of request.object is not a valid pod template: {error}", f"write {error.wanted} there")
        case InputError():
            return Unreadable(f"request.object: {error.message}", "write it in the form that its kind expects")
    return Unreadable(
        f"request.object has more than {MOST_TEMPLATES} pod templates, or one that is too large", "write fewer or smaller ones"
    )


def answer_workload(one: WorkloadReview, verdict: Verdict, phase: Phase, console_url: str = "") -> dict[str, Any]:
    """Return the AdmissionReview to send back: allowed, on mutate with what is written, or denied."""
    response = review.decided(one.asked.uid, verdict, phase, console_url)
    if annotations := {} if one.asked.dry_run else audit_annotations(verdict):
        response["auditAnnotations"] = annotations
    return review.sent(response, (text for _, text in warnings.for_author(verdict, {})))
