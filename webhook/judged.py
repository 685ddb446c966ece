"""One review judged: its body in, the decision in one word and the answer's JSON out."""

from __future__ import annotations

import orjson

from policies import claims
from policies.engine import evaluate
from policies.pod import PodError
from policies.request import Phase, Request
from policies.snapshot import Facts, Snapshot
from webhook import advise, claim_review, decisions, log_fields, logs, review
from webhook.decisions import Decided
from webhook.metrics import Metrics
from webhook.outcomes import of_claim
from webhook.review import Review, ReviewError
from webhook.seen import MOST_SEEN, seen


class NotYet(Exception):
    """What the decision depends on is on its way here: the call is to come again."""


def pod(phase: Phase, body: bytes, snapshot: Snapshot, metrics: Metrics) -> tuple[str, bytes]:
    """A review of a pod. Nothing is told of a dry run: it never happened. Raises ReviewError and NotYet."""
    return _pod(phase, review.load(body), snapshot, metrics)


def validated(body: bytes, snapshot: Snapshot, metrics: Metrics) -> tuple[str, bytes]:
    """What comes to /validate: a review of a pod, or of a claim or template. Raises ReviewError and NotYet."""
    document = review.load(body)
    if claim_review.is_about(document):
        return _claim(document, snapshot, metrics)
    return _pod("validate", document, snapshot, metrics)


def _claim(document: object, snapshot: Snapshot, metrics: Metrics) -> tuple[str, bytes]:
    asked = claim_review.from_document(document)
    size = asked.size()
    if size > MOST_SEEN:
        return _overgrown("validate", asked.uid, size, snapshot)
    if not snapshot.knows(asked.namespace):
        raise NotYet
    verdict = claims.judge(asked.request(), snapshot.facts_for(asked.namespace))
    word = log_fields.decision(verdict, "validate")
    if not asked.dry_run:
        metrics.count(of_claim(verdict))
        logs.write("decision", "info", log_fields.of_decision(verdict, "validate", word), **log_fields.whose_claim(asked))
    return word, orjson.dumps(claim_review.answer(asked, verdict))


def _pod(phase: Phase, document: object, snapshot: Snapshot, metrics: Metrics) -> tuple[str, bytes]:
    asked = review.from_document(document)
    text = seen(asked.pod, snapshot.reads)
    size = len(text) if asked.old_pod is None else max(len(text), len(seen(asked.old_pod, snapshot.reads)))
    if size > MOST_SEEN:
        return _overgrown(phase, asked.uid, size, snapshot)
    if not snapshot.knows(asked.namespace):
        raise NotYet
    facts = snapshot.facts_for(asked.namespace)
    request = asked.request(phase)
    key = decisions.key(request, facts, text)
    kept = snapshot.memory.decided
    decided: Decided | None = kept.get(key)
    if decided is None:
        decided = _decided(asked, request, facts)
        if key is not None:
            decisions.keep(kept, key, decided)
    if not asked.dry_run:
        metrics.count(decided.tally)
        logs.write("decision", "info", decided.told, **log_fields.whose(asked, phase))
    return decided.word, decided.answer(asked.uid)


def _decided(asked: Review, request: Request, facts: Facts) -> Decided:
    try:
        verdict = evaluate(request, facts)
    except PodError as error:
        raise ReviewError(400, f"request.object is not shaped like a pod: {error}") from None
    return decisions.decided(asked, verdict, request.phase)


def _overgrown(phase: Phase, uid: str, size: int, snapshot: Snapshot) -> tuple[str, bytes]:
    """More is to be read than there is time for. As with a review over the cap, an error would let it pass where the entry says Ignore."""
    refused = snapshot.enforces
    logs.write("too_large", "warning", phase=phase, uid=logs.cut(uid), bytes=size, refused=refused)
    return "refused" if refused else "unmatched", orjson.dumps(review.overgrown(uid, size=size, limit=MOST_SEEN, refused=refused))


def workload(body: bytes, snapshot: Snapshot, metrics: Metrics) -> tuple[str, bytes]:
    """A review of a workload: always allowed, with what its pods will meet as warnings. Raises ReviewError and NotYet."""
    asked = advise.parse(body)
    if not snapshot.knows(asked.namespace):
        raise NotYet
    sentences = advise.advise(asked, snapshot)
    if not asked.dry_run:
        logs.write("advice", **log_fields.of_advice(asked, sentences))
    return "advised", orjson.dumps(advise.answer(asked, sentences))
