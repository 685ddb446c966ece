"""The handlers: each evaluates one review, from its body to the decision in one word and the answer's JSON."""

from __future__ import annotations

import orjson

from analysis.reviews import claim_review, review, workload_advice, workload_review
from analysis.reviews.decoding import decode_body, encoded
from analysis.reviews.review import ObjectRequest, Unreadable
from kube.pod import PodError
from kube.review import Head, resource_of
from kube.tree import Raw
from policies import work_budget
from policies.claims import judging, reapplied
from policies.engine import evaluate
from policies.patch import applied_again
from policies.planning.devices import judges
from policies.pods.projection import extract
from policies.request import Phase, Request
from policies.state.snapshot import Facts, Snapshot
from policies.verdict import Verdict
from policies.work_budget import MOST_READ
from telemetry import log
from telemetry.metrics import Metrics
from telemetry.policy_metrics import of_claim
from webhook.admission import decision_cache
from webhook.admission.decision_cache import Decisions, StoredDecision
from webhook.admission.parking import NotYet
from webhook.admission.unevaluated_reviews import UNKNOWN_NAMESPACE, answer_unevaluated, answer_unreadable, too_large

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
    """Evaluate a review of a pod, a claim or its template, or a workload. A dry run is neither logged nor counted.

    ``decisions``: those made under this snapshot; None: each is made anew. ``waits``: whether it may wait for
    what is about to arrive; else what is unknown counts at its worst. Raises ReviewError, and NotYet if it waits.
    """
    try:
        document = decode_body(body)
        resource = resource_of(document)
        if resource in claim_review.KINDS:
            return _handle_claim(phase, document, snapshot, metrics, waits=waits)
        if phase == "validate" and workload_review.may_be_workload(resource):
            return _handle_workload(phase, document, snapshot, metrics, waits=waits)
        return _handle_pod(phase, document, snapshot, metrics, decisions, waits=waits)
    except Unreadable as error:
        return answer_unreadable(phase, body, snapshot, error)


def handle_label(
    body: bytes, snapshot: Snapshot, metrics: Metrics, decisions: Decisions | None = None, *, waits: bool = False
) -> tuple[str, bytes]:
    """Answer a review of a new workload with the label of its queue, if a default gives one; as advice, it never denies.
    Raises ReviewError, and NotYet if it waits."""
    try:
        return "advised", _handle_workload("mutate", decode_body(body), snapshot, metrics, waits=waits)[1]
    except Unreadable as error:
        return answer_unreadable("advise", body, snapshot, error)


def _handle_workload(phase: Phase, document: object, snapshot: Snapshot, metrics: Metrics, *, waits: bool) -> tuple[str, bytes]:
    """Evaluate a workload for its queue."""
    request = workload_advice.from_document(document)
    if not snapshot.knows(request.namespace):  # a label is never denied
        return _answer_unknown_namespace("advise" if phase == "mutate" else phase, request.uid, request.namespace, snapshot, waits=waits)
    verdict = (
        workload_review.label_workload(request, snapshot) if phase == "mutate" else workload_review.evaluate_workload(request, snapshot)
    )
    return _answer_object(phase, request, verdict, snapshot, metrics, is_counted=verdict.judged)


def _handle_claim(phase: Phase, document: object, snapshot: Snapshot, metrics: Metrics, *, waits: bool) -> tuple[str, bytes]:
    request = claim_review.from_document(document)
    if request.operation == "UPDATE":  # of a spec that can't be changed
        restored = Verdict(judged=False, patch=reapplied.patch(request.old or {}, request.value))
        return _answer_object(phase, request, restored, snapshot, metrics)
    size = claim_review.size_of(request)
    if size > MOST_READ:
        return _answer_too_large(phase, request, size, snapshot)
    if not snapshot.knows(request.namespace):
        return _answer_unknown_namespace(phase, request.uid, request.namespace, snapshot, waits=waits)
    verdict = judging.evaluate_claim(claim_review.request_of(request, phase), snapshot.facts_for(request.namespace))
    written = len(orjson.dumps(verdict.patch)) if verdict.patch else 0
    if written > MOST_WRITTEN:
        return _answer_too_large(phase, request, written, snapshot)
    return _answer_object(phase, request, verdict, snapshot, metrics)


def _answer_object(
    phase: Phase, request: ObjectRequest, verdict: Verdict, snapshot: Snapshot, metrics: Metrics, *, is_counted: bool = True
) -> tuple[str, bytes]:
    """Answer a review of a claim or a workload; count and log the decision, unless it is a dry run."""
    word = decision_cache.decision_word(verdict, phase)
    if is_counted and not request.dry_run:
        metrics.count(of_claim(verdict))
        log.write("decision", "info", decision_cache.decision_fields(verdict, phase, word), **decision_cache.object_fields(request, phase))
    return word, orjson.dumps(review.answer_object(request, verdict, phase, snapshot.console_url))


def _answer_unknown_namespace(phase: str, uid: str, namespace: str, snapshot: Snapshot, *, waits: bool) -> tuple[str, bytes]:
    """Answer a review of a namespace so new that its labels have not arrived. Raises NotYet if it waits."""
    if waits:
        raise NotYet(namespace, lambda newer: newer.knows(namespace))
    return answer_unevaluated(phase, Head(uid, namespace), snapshot, UNKNOWN_NAMESPACE)


def _handle_pod(
    phase: Phase, document: object, snapshot: Snapshot, metrics: Metrics, decisions: Decisions | None, *, waits: bool
) -> tuple[str, bytes]:
    request = review.from_document(document, phase)
    if phase == "mutate" and request.old_pod is not None:
        return _answer_unjudged_pod(phase, request, _restore_written(request.old_pod, request.pod, snapshot))
    facts = snapshot.facts_for(request.namespace)
    read = extract(request.pod, facts.reads)
    text = encoded(read)
    before = None if request.old_pod is None else extract(request.old_pod, facts.reads)
    size = len(text) if before is None else max(len(text), len(encoded(before)))
    if size > MOST_READ:
        return _answer_large_pod(phase, request, size, facts)
    if not snapshot.knows(request.namespace):
        return _answer_unknown_namespace(phase, request.uid, request.namespace, snapshot, waits=waits)
    key = decision_cache.decision_key(phase, request, facts, text)
    decision = decisions.get(key) if decisions is not None else None
    if decision is None:
        items = work_budget.items(read)
        if max(items, 0 if before is None else work_budget.items(before)) > work_budget.MOST:
            return _answer_large_pod(phase, request, size, facts)
        decision = _evaluate_pod(request, phase, facts, read, size, items)
        if decision is None:
            return _answer_too_large(phase, request, size, snapshot)
        if key is not None and decisions is not None:
            decision_cache.keep(decisions, key, decision)
    if waits and decision.missing and snapshot.every_namespace:
        missing = [(kind, request.namespace, name) for kind, name in decision.missing]
        raise NotYet(request.namespace, lambda newer: all(claim in newer.cluster.claims for claim in missing))
    if not request.dry_run:
        metrics.count(decision.tally, facts)
        log.write("decision", "info", decision.logged, **decision_cache.pod_fields(request, phase))
    return decision.word, decision.answer(request.uid)


def _restore_written(old: Raw, new: Raw, snapshot: Snapshot) -> Verdict:
    """Return the answer to an update that may take away what policies wrote."""
    small = work_budget.items(old) <= work_budget.MOST and work_budget.items(new) <= work_budget.MOST
    return Verdict(judged=False, patch=applied_again.patch(old, new, snapshot.whole) if small else ())


def _answer_unjudged_pod(phase: Phase, request: Request, verdict: Verdict) -> tuple[str, bytes]:
    """Answer a review of a pod for which no policy is read; log the decision, unless it is a dry run."""
    word = decision_cache.decision_word(verdict, phase)
    if not request.dry_run:
        log.write("decision", "info", decision_cache.decision_fields(verdict, phase, word), **decision_cache.pod_fields(request, phase))
    return word, orjson.dumps(review.answer_review(request, verdict, phase=phase))


def _answer_large_pod(phase: Phase, request: Request, size: int, facts: Facts) -> tuple[str, bytes]:
    """Answer a review of a pod that is too large to be evaluated: one that requests nothing that is evaluated is admitted."""
    try:
        if not judges(request.pod, facts.snapshot):
            return _answer_unjudged_pod(phase, request, Verdict(judged=False))
    except PodError as error:
        raise _invalid_pod(error) from None
    return _answer_too_large(phase, request, size, facts.snapshot)


def _invalid_pod(error: PodError) -> Unreadable:
    return Unreadable(f"request.object is not a valid pod: {error}", f"write {error.wanted} there")


def _evaluate_pod(request: Request, phase: Phase, facts: Facts, read: Raw, size: int, items: int) -> StoredDecision | None:
    """Return None for a pod that is too large with what policies add to it: evaluated once more, it would be denied."""
    try:
        verdict = evaluate(request, facts, read)
    except PodError as error:
        raise _invalid_pod(error) from None
    written = len(orjson.dumps(verdict.patch)) if verdict.patch else 0
    if written and (size + written > MOST_READ or not work_budget.fits_after(read, verdict.edits, items)):
        return None
    return decision_cache.store_verdict(request, verdict, phase, facts.snapshot.console_url)


def _answer_too_large(phase: Phase, request: Request | ObjectRequest, size: int, snapshot: Snapshot) -> tuple[str, bytes]:
    """Answer a review of which more would have to be evaluated than there is time for."""
    return answer_unevaluated(phase, Head(request.uid, request.namespace), snapshot, too_large(size, None))


def advise_workload(
    body: bytes, snapshot: Snapshot, metrics: Metrics, decisions: Decisions | None = None, *, waits: bool = False
) -> tuple[str, bytes]:
    """Advise on a workload: always allowed, with warnings about what its pods will meet. Raises ReviewError,
    and NotYet if it waits."""
    try:
        request = workload_advice.parse(body)
    except Unreadable as error:
        return answer_unreadable("advise", body, snapshot, error)
    if not snapshot.knows(request.namespace):
        return _answer_unknown_namespace("advise", request.uid, request.namespace, snapshot, waits=waits)
    advice = workload_advice.advise(request, snapshot)
    if not request.dry_run:
        log.write("advice", **decision_cache.advice_fields(request, advice))
    return "advised", orjson.dumps(workload_advice.answer_advice(request, advice, snapshot.console_url))
