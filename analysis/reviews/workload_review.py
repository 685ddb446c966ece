"""Reviews of workloads, judged for their queues."""

from __future__ import annotations

from dataclasses import replace

from analysis.kueue import places
from analysis.reviews import claim_review
from analysis.reviews.decoding import Unreadable
from analysis.reviews.review import ObjectRequest
from analysis.reviews.workload_advice import AROUND
from kube.pod import PodError
from kube.review import PODS
from kube.tree import map_at
from policies.document import InputError
from policies.pods.permissions import QUEUE_NAME
from policies.state.snapshot import Facts, Snapshot
from policies.verdict import Remark, Verdict
from policies.workloads.pods import describing
from policies.workloads.queues import queue_verdict, queued
from policies.workloads.queues.queued import MOST_TEMPLATES, QueuedWorkload, WorkloadTooLarge

_UNREAD = (InputError, PodError, WorkloadTooLarge)


def may_be_workload(resource: tuple[str, str] | None) -> bool:
    """Return whether a resource may be a workload: no pod, and nothing of the group of claims."""
    return resource is not None and resource != PODS and resource[0] != claim_review.GROUP


def evaluate_workload(request: ObjectRequest, snapshot: Snapshot) -> Verdict:
    """Judge a workload that is made or changed: what an update leaves as it was passes. Raises Unreadable."""
    workload = _read(request, snapshot)
    if workload is None:
        return Verdict(judged=False)
    facts = snapshot.facts_for(request.namespace)
    verdict, remarks = _queued(request, workload, facts), _waiting(request, workload, facts)
    if not remarks or verdict.violations:
        return verdict
    return replace(verdict, remarks=(*verdict.remarks, *remarks), judged=True)


def _queued(request: ObjectRequest, workload: QueuedWorkload, facts: Facts) -> Verdict:
    """Return the verdict of policies on its queue. Raises Unreadable."""
    if not queue_verdict.speaks(facts, "validate"):
        return Verdict(judged=False)
    update = request.operation == "UPDATE"
    try:
        return queue_verdict.evaluate_queue(workload, facts, "validate", update=update, before=_before(request, workload, facts))
    except _UNREAD as error:
        if not queue_verdict.requires(facts):
            return Verdict(judged=False)
        raise _unreadable(error) from None


def _waiting(request: ObjectRequest, workload: QueuedWorkload, facts: Facts) -> tuple[Remark, ...]:
    """Return why a workload that is made, or moved to another queue of Kueue's, waits for ever."""
    queue, before = (map_at(value, "metadata", "labels").get(QUEUE_NAME) for value in (workload.value, request.old))
    moved = request.operation == "CREATE" or (request.old is not None and queue != before)
    return places.remarks(workload.value, workload.owner, facts, AROUND) if moved else ()


def _before(request: ObjectRequest, workload: QueuedWorkload, facts: Facts) -> QueuedWorkload | None:
    """Return the workload before an update; None if that can't be read."""
    before = workload.of(request.old) if request.old is not None else None
    try:
        if before is not None:
            queued.read_pods(before, facts)
    except _UNREAD:
        return None
    return before


def label_workload(request: ObjectRequest, snapshot: Snapshot) -> Verdict:
    """Return what defaults make of a new workload, and what policies in Audit and Warn would. One that can't be read is left as it is."""
    facts = snapshot.facts_for(request.namespace)
    workload = _read(request, snapshot) if request.operation == "CREATE" and queue_verdict.speaks(facts, "mutate") else None
    try:
        return queue_verdict.evaluate_queue(workload, facts, "mutate") if workload is not None else Verdict(judged=False)
    except _UNREAD:
        return Verdict(judged=False)


def _read(request: ObjectRequest, snapshot: Snapshot) -> QueuedWorkload | None:
    """Return the workload; None for a kind that describes no pods."""
    catalog = snapshot.catalog
    owner = describing(catalog, request.api_version, request.kind, name=request.name, namespace=request.namespace)
    return (
        QueuedWorkload(user=request.user, value=request.value, catalog=catalog, owner=owner, around=AROUND) if owner is not None else None
    )


def _unreadable(error: Exception) -> Unreadable:
    match error:
        case PodError():
            return Unreadable(f"a template of request.object is not a valid pod template: {error}", f"write {error.wanted} there")
        case InputError():
            return Unreadable(f"request.object: {error.message}", "write it in the form that its kind expects")
    return Unreadable(
        f"request.object has more than {MOST_TEMPLATES} pod templates, or one that is too large", "write fewer or smaller ones"
    )
