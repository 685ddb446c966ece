"""The handlers: each judges one review, from its body to the decision in one word and the answer's JSON."""

from __future__ import annotations

import orjson

from analysis.reviews import claim_review, review, workload_advice, workload_review
from analysis.reviews.decoding import TooLong, decode_body, encoded
from analysis.reviews.review import ObjectReview, Unreadable
from documents.printable import cut
from kube.pod import PodError
from kube.review import Head, head_of, resource_of
from kube.tree import Raw
from policies import work_budget
from policies.claims import claim_verdict
from policies.claims.restore import restore_claim
from policies.engine import evaluate
from policies.patch.restore import restore_pod
from policies.planning.devices import needs_evaluation
from policies.pods.projection import extract
from policies.request import Phase, Request
from policies.state.snapshot import NamespaceFacts, Snapshot
from policies.verdict import Verdict
from policies.work_budget import MOST_READ
from server.limits import UID_BYTES
from telemetry import log
from telemetry.metrics import Metrics
from telemetry.policy_metrics import of_claim
from webhook.admission import decision_cache, unread_reviews
from webhook.admission.decision_cache import Decisions, StoredDecision
from webhook.admission.parking import NotYet
from webhook.admission.unread_reviews import answer_unjudged

MOST_WRITTEN = 2**20
"""Bytes of a claim's patch: etcd takes objects of 1.5 MiB."""


def handle_review(
    phase: Phase,
    body: bytes,
    snapshot: Snapshot,
    metrics: Metrics,
    decisions: Decisions | None = None,
    *,
    waits: bool = False,
) -> tuple[str, bytes]:
    """Judge a review of a pod, a claim or its template, or a workload. A dry run is neither logged nor counted.

    ``decisions``: those made under this snapshot; None: each is made anew. ``waits``: whether it may wait for
    what is about to arrive; else what is unknown counts at its worst. Raises ReviewError, and NotYet if it waits.
    """
    try:
        document = decode_body(body)
        resource = resource_of(document)
        if resource in claim_review.KINDS:
            return _claim(phase, document, snapshot, metrics, waits=waits)
        if phase == "validate" and workload_review.may_be_workload(resource):
            return _queued(phase, document, snapshot, metrics, waits=waits)
        return _pod(phase, document, snapshot, metrics, decisions, waits=waits)
    except Unreadable as error:
        return _unreadable(phase, body, snapshot, error)


def handle_label(
    body: bytes, snapshot: Snapshot, metrics: Metrics, decisions: Decisions | None = None, *, waits: bool = False
) -> tuple[str, bytes]:
    """Answer a review of a new workload with the label of its queue, if a default gives one; as advice, it never denies.
    Raises ReviewError, and NotYet if it waits."""
    try:
        return "advised", _queued("mutate", decode_body(body), snapshot, metrics, waits=waits)[1]
    except Unreadable as error:
        return _unreadable("advise", body, snapshot, error)


def _queued(phase: Phase, document: object, snapshot: Snapshot, metrics: Metrics, *, waits: bool) -> tuple[str, bytes]:
    """Judge a workload for its queue."""
    asked = workload_advice.from_document(document)
    if not snapshot.knows(asked.namespace):  # a label is never denied
        return _of_unknown("advise" if phase == "mutate" else phase, asked.uid, asked.namespace, snapshot, waits=waits)
    verdict = workload_review.label_workload(asked, snapshot) if phase == "mutate" else workload_review.evaluate_workload(asked, snapshot)
    return _answer_object(phase, asked, verdict, snapshot, metrics, is_counted=verdict.is_evaluated)


def _claim(phase: Phase, document: object, snapshot: Snapshot, metrics: Metrics, *, waits: bool) -> tuple[str, bytes]:
    asked = claim_review.from_document(document)
    if asked.operation == "UPDATE":  # of a spec that can't be changed
        again = Verdict(is_evaluated=False, patch=restore_claim(asked.old or {}, asked.value))
        return "unmatched", orjson.dumps(review.answer_object(asked, again, phase, snapshot.console_url))
    size = claim_review.size_of(asked)
    if size > MOST_READ:
        return _overgrown(phase, asked, size, snapshot)
    if not snapshot.knows(asked.namespace):
        return _of_unknown(phase, asked.uid, asked.namespace, snapshot, waits=waits)
    verdict = claim_verdict.evaluate_claim(claim_review.request_of(asked, phase), snapshot.facts_for(asked.namespace))
    written = len(orjson.dumps(verdict.patch)) if verdict.patch else 0
    if written > MOST_WRITTEN:
        return _overgrown(phase, asked, written, snapshot)
    return _answer_object(phase, asked, verdict, snapshot, metrics)


def _answer_object(
    phase: Phase, subject: ObjectReview, verdict: Verdict, snapshot: Snapshot, metrics: Metrics, *, is_counted: bool = True
) -> tuple[str, bytes]:
    """Answer a review of a claim or a workload; count and log the decision, unless it is a dry run."""
    word = decision_cache.decision_word(verdict, phase)
    if is_counted and not subject.dry_run:
        metrics.count(of_claim(verdict))
        log.write("decision", "info", decision_cache.of_decision(verdict, phase, word), **decision_cache.whose_object(subject, phase))
    return word, orjson.dumps(review.answer_object(subject, verdict, phase, snapshot.console_url))


def _of_unknown(phase: str, uid: str, namespace: str, snapshot: Snapshot, *, waits: bool) -> tuple[str, bytes]:
    """Answer a review of a namespace so new that its labels have not arrived. Raises NotYet if it waits."""
    if waits:
        raise NotYet(namespace, lambda now: now.knows(namespace))
    return answer_unjudged(phase, Head(uid, namespace), snapshot, unread_reviews.not_now("namespace"))


def _pod(
    phase: Phase, document: object, snapshot: Snapshot, metrics: Metrics, decisions: Decisions | None, *, waits: bool
) -> tuple[str, bytes]:
    asked = review.from_document(document, phase)
    if phase == "mutate" and asked.old_pod is not None:
        return "unmatched", orjson.dumps(review.answer_review(asked, _again(asked.old_pod, asked.pod, snapshot), phase=phase))
    facts = snapshot.facts_for(asked.namespace)
    read = extract(asked.pod, facts.reads)
    text = encoded(read)
    before = None if asked.old_pod is None else extract(asked.old_pod, facts.reads)
    size = len(text) if before is None else max(len(text), len(encoded(before)))
    if size > MOST_READ:
        return _large(phase, asked, size, facts)
    if not snapshot.knows(asked.namespace):
        return _of_unknown(phase, asked.uid, asked.namespace, snapshot, waits=waits)
    key = decision_cache.key(phase, asked, facts, text)
    decided = decisions.get(key) if decisions is not None else None
    if decided is None:
        items = work_budget.items(read)
        if max(items, 0 if before is None else work_budget.items(before)) > work_budget.MOST:
            return _large(phase, asked, size, facts)
        decided = _decided(asked, phase, facts, read, size, items)
        if decided is None:
            return _overgrown(phase, asked, size, snapshot)
        if key is not None and decisions is not None:
            decision_cache.keep(decisions, key, decided)
    if waits and decided.missing and snapshot.every_namespace:
        missing = [(kind, asked.namespace, name) for kind, name in decided.missing]
        raise NotYet(asked.namespace, lambda now: all(claim in now.cluster.claims for claim in missing))
    if not asked.dry_run:
        metrics.count(decided.tally, facts)
        log.write("decision", "info", decided.logged, **decision_cache.whose(asked, phase))
    return decided.word, decided.answer(asked.uid)


def _again(old: Raw, new: Raw, snapshot: Snapshot) -> Verdict:
    """Return the answer to an update that may take away what policies wrote."""
    small = work_budget.items(old) <= work_budget.MOST and work_budget.items(new) <= work_budget.MOST
    return Verdict(is_evaluated=False, patch=restore_pod(old, new, snapshot.whole) if small else ())


def _large(phase: Phase, asked: Request, size: int, facts: NamespaceFacts) -> tuple[str, bytes]:
    """Answer a review of a pod that is too large to be judged: one that asks for nothing that is judged is admitted."""
    try:
        if not needs_evaluation(asked.pod, facts.snapshot):
            return "unmatched", orjson.dumps(review.answer_review(asked, Verdict(is_evaluated=False), phase=phase))
    except PodError as error:
        raise _shapeless(error) from None
    return _overgrown(phase, asked, size, facts.snapshot)


def _shapeless(error: PodError) -> Unreadable:
    return Unreadable(f"request.object is not a valid pod: {error}", f"write {error.wanted} there")


def _decided(asked: Request, phase: Phase, facts: NamespaceFacts, read: Raw, size: int, items: int) -> StoredDecision | None:
    """Return None for a pod that is too large with what policies add to it: judged once more, it would be denied."""
    try:
        verdict = evaluate(asked, facts, read)
    except PodError as error:
        raise _shapeless(error) from None
    written = len(orjson.dumps(verdict.patch)) if verdict.patch else 0
    if written and (size + written > MOST_READ or not work_budget.fits_after(read, verdict.edits, items)):
        return None
    return decision_cache.decided(asked, verdict, phase, facts.snapshot.console_url)


def _overgrown(phase: Phase, asked: Request | ObjectReview, size: int, snapshot: Snapshot) -> tuple[str, bytes]:
    """Answer a review of which more would have to be judged than there is time for."""
    return handle_too_large(phase, Head(asked.uid, asked.namespace), size, None, snapshot)


def _unreadable(phase: str, body: bytes, snapshot: Snapshot, error: Unreadable) -> tuple[str, bytes]:
    """Answer a review that cannot be read."""
    head = head_of(body[:UID_BYTES])
    if head is None:
        raise error
    denied = unread_reviews.is_denied(phase, head, snapshot)
    by_class = head.group == claim_review.GROUP  # of any name
    if denied and isinstance(error, TooLong) and not by_class and not unread_reviews.names_accelerator(body, snapshot):
        return "unmatched", orjson.dumps(review.sent({"uid": head.uid, "allowed": True}, []))
    log.write("unreadable", "warning", phase=phase, uid=cut(head.uid), reason=cut(error.sentence), denied=denied)
    return answer_unjudged(phase, head, snapshot, unread_reviews.unreadable(error))


def handle_too_large(phase: str, head: Head, size: int, limit: int | None, snapshot: Snapshot) -> tuple[str, bytes]:
    """Answer a review that is too large to be judged, by its head.

    ``limit``: the body cap, in bytes; None if the body was read, and more would have to be judged than there
    is time for.
    """
    denied = unread_reviews.is_denied(phase, head, snapshot)
    log.write("too_large", "warning", phase=phase, uid=cut(head.uid), bytes=size, denied=denied)
    return answer_unjudged(phase, head, snapshot, unread_reviews.too_large(size, limit))


def advise_workload(
    body: bytes, snapshot: Snapshot, metrics: Metrics, decisions: Decisions | None = None, *, waits: bool = False
) -> tuple[str, bytes]:
    """Advise on a workload: always allowed, with warnings about what its pods will meet. Raises ReviewError,
    and NotYet if it waits."""
    try:
        asked = workload_advice.parse(body)
    except Unreadable as error:
        return _unreadable("advise", body, snapshot, error)
    if not snapshot.knows(asked.namespace):
        return _of_unknown("advise", asked.uid, asked.namespace, snapshot, waits=waits)
    advice = workload_advice.advise(asked, snapshot)
    if not asked.dry_run:
        log.write("advice", **decision_cache.of_advice(asked, advice))
    return "advised", orjson.dumps(workload_advice.answer_advice(asked, advice, snapshot.console_url))
