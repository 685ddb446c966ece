"""Reviews of workloads: read, judged for their queues, answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from policies.catalog import Workload
from policies.document import Document, InputError
from policies.kueue import places
from policies.messages import Phrase
from policies.patch.json_patch import Patch
from policies.pods.permissions import QUEUE_NAME
from policies.pods.view import PodError, Raw
from policies.queues.joining import Idle
from policies.rules.queues import default_queue, required_queue
from policies.settings.running import Named
from policies.state.snapshot import Facts, Snapshot
from policies.values.untyped import map_at
from policies.verdict import Edit, Path, Remark, Verdict
from policies.workloads import queued
from policies.workloads.pods import Owner, pods_of
from policies.workloads.queued import Label, Made
from policies.workloads.templates import workload_of
from webhook.admission import claim_review, review, warnings, workload_advice
from webhook.admission.decoding import Unreadable
from webhook.admission.workload_advice import AROUND, Advised

MOST_TEMPLATES = 256
"""The most templates whose pods are read: one with more is not judged, and refused where a queue is required."""
_LABEL: Path = ("metadata", "labels", QUEUE_NAME)


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


def judged(one: WorkloadReview, snapshot: Snapshot) -> Verdict:
    """Judge a workload that is made or changed: what an update leaves as it was passes. Raises Unreadable."""
    facts = snapshot.facts_for(one.asked.namespace)
    remarks = _waiting(one, facts)
    if not queued.asks(facts):
        return Verdict(remarks=remarks, judged=bool(remarks))
    now = _past(one.asked, one.asked.workload, facts)
    before = _before(one, facts)
    violations = tuple(violation for violation in now.violations if violation.key not in before)
    matched = tuple(sorted({policy for v in violations for policy in v.policies}))
    return Verdict(violations=violations, remarks=() if violations else remarks, matched=matched, judged=now.judged or bool(remarks))


def _waiting(one: WorkloadReview, facts: Facts) -> tuple[Remark, ...]:
    """Return why a workload that is made, or moved to another queue, waits for ever."""
    asked, known = one.asked, workload_of(facts.snapshot.catalog, one.asked.api_version, one.asked.kind)
    if known is None or not known.describes_pods or (asked.operation != "CREATE" and not _moved(one)):
        return ()
    return places.remarks(asked.workload, _owner(asked, known), facts, AROUND)


def _moved(one: WorkloadReview) -> bool:
    now, before = (map_at(value, "metadata", "labels").get(QUEUE_NAME) for value in (one.asked.workload, one.old))
    return one.old is not None and now != before


def _before(one: WorkloadReview, facts: Facts) -> set[tuple[str, Phrase]]:
    """Return what was wrong before an update; nothing if that can't be read."""
    try:
        return set() if one.old is None else {violation.key for violation in _past(one.asked, one.old, facts).violations}
    except Unreadable:
        return set()


def _past(asked: Advised, workload: Raw, facts: Facts) -> Verdict:
    made = _made(asked, workload, facts)
    if made is None:
        return Verdict(judged=False)
    try:
        return Verdict(violations=tuple(required_queue.violation(*found) for found in queued.past(made, facts)))
    except PodError as error:
        raise Unreadable(f"a template of request.object is not shaped like a pod's: {error}", f"write {error.wanted} there") from None


def labelled(one: WorkloadReview, snapshot: Snapshot) -> Verdict:
    """Return what a default makes of a new workload. One that can't be read is left as it is."""
    facts = snapshot.facts_for(one.asked.namespace)
    if one.asked.operation != "CREATE" or not queued.gives(facts):
        return Verdict(judged=False)
    try:
        made = _made(one.asked, one.asked.workload, facts)
        found = queued.label(made, facts) if made is not None else None
    except (PodError, Unreadable):
        return Verdict(judged=False)
    return _verdict(found, one.asked.workload)


def _verdict(found: Label | Idle | Named[Any] | None, workload: Raw) -> Verdict:
    match found:
        case Label():
            edit = Edit(op="add", path=_LABEL, value=found.queue, rule=default_queue.NAME, policies=found.policies)
            patch = Patch(workload)
            patch.apply(edit)
            return Verdict(edits=(edit,), matched=found.policies, patch=tuple(patch.operations))
        case Idle() | Named():
            remark = default_queue.idle(found.why, found) if isinstance(found, Idle) else found.differs("queue", default_queue.NAME)
            return Verdict(remarks=(remark,), matched=found.policies)
    return Verdict(judged=False)


def _made(asked: Advised, workload: Raw, facts: Facts) -> Made | None:
    """Return the workload with its pods; None for a kind that describes none. Raises Unreadable."""
    catalog = facts.snapshot.catalog
    known = workload_of(catalog, asked.api_version, asked.kind)
    if known is None or not known.describes_pods:
        return None
    pods = list(islice(_pods(Document(file="", value=workload), _owner(asked, known), facts), MOST_TEMPLATES + 1))
    if len(pods) > MOST_TEMPLATES:
        raise Unreadable(f"request.object has more than {MOST_TEMPLATES} pod templates", "write fewer of them")
    return Made(namespace=asked.namespace, user=asked.user, value=workload, catalog=catalog, known=known, pods=pods)


def _owner(asked: Advised, known: Workload) -> Owner:
    return Owner(api_version=asked.api_version, kind=asked.kind, name=asked.name, namespace=asked.namespace, workload=known)


def _pods(document: Document, owner: Owner, facts: Facts) -> Iterator[Raw]:
    for one in pods_of(document, owner, facts.snapshot.catalog, AROUND):
        if isinstance(one, InputError):
            raise Unreadable(f"request.object: {one.message}", "write it as its kind wants it")
        yield one.pod


def answer(one: WorkloadReview, verdict: Verdict, console_url: str = "") -> dict[str, Any]:
    """Return the AdmissionReview to send back: allowed, with the label if there is one, or refused."""
    response = review.decided(one.asked.uid, verdict, "mutate", console_url)  # on /validate there is no patch
    return review.sent(response, map(str, warnings.warned(verdict.remarks, verdict.violations, {})))
