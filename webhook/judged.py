"""One review judged: its body in, the decision in one word and the answer's JSON out."""

from __future__ import annotations

from time import monotonic

import orjson

from policies import claims, work
from policies.engine import evaluate
from policies.pod import PodError
from policies.request import Phase, Request
from policies.snapshot import Facts, Snapshot
from webhook import advise, claim_review, decisions, log_fields, logs, review, unread
from webhook.awaited import Awaited, Claim
from webhook.claim_review import ClaimReview
from webhook.decisions import Decided
from webhook.limits import UID_BYTES
from webhook.metrics import Metrics
from webhook.outcomes import of_claim
from webhook.review import Review, Unreadable
from webhook.seen import MOST_SEEN, seen


class NotYet(Exception):
    """What the decision depends on is on its way here: the call is to come again."""


def pod(phase: Phase, body: bytes, snapshot: Snapshot, metrics: Metrics, awaited: Awaited | None = None) -> tuple[str, bytes]:
    """A review of a pod. Nothing is told of a dry run: it never happened. ``awaited``: claims that are waited for; None: none is.
    Raises ReviewError and NotYet."""
    try:
        return _pod(phase, review.load(body), snapshot, metrics, awaited)
    except Unreadable as error:
        return _unreadable(phase, body, snapshot, error)


def validated(body: bytes, snapshot: Snapshot, metrics: Metrics, awaited: Awaited | None = None) -> tuple[str, bytes]:
    """What comes to /validate: a review of a pod, or of a claim or template. Raises ReviewError and NotYet."""
    try:
        document = review.load(body)
        if claim_review.is_about(document):
            return _claim(document, snapshot, metrics)
        return _pod("validate", document, snapshot, metrics, awaited)
    except Unreadable as error:
        return _unreadable("validate", body, snapshot, error)


def _claim(document: object, snapshot: Snapshot, metrics: Metrics) -> tuple[str, bytes]:
    asked = claim_review.from_document(document)
    size = asked.size()
    if size > MOST_SEEN:
        return _overgrown("validate", asked, size, snapshot)
    if not snapshot.knows(asked.namespace):
        raise NotYet
    verdict = claims.judge(asked.request(), snapshot.facts_for(asked.namespace))
    word = log_fields.decision(verdict, "validate")
    if not asked.dry_run:
        metrics.count(of_claim(verdict))
        logs.write("decision", "info", log_fields.of_decision(verdict, "validate", word), **log_fields.whose_claim(asked))
    return word, orjson.dumps(claim_review.answer(asked, verdict))


def _pod(phase: Phase, document: object, snapshot: Snapshot, metrics: Metrics, awaited: Awaited | None) -> tuple[str, bytes]:
    asked = review.from_document(document)
    facts = snapshot.facts_for(asked.namespace)
    text = seen(asked.pod, facts.reads)
    size = len(text) if asked.old_pod is None else max(len(text), len(seen(asked.old_pod, facts.reads)))
    if size > MOST_SEEN:
        return _overgrown(phase, asked, size, snapshot)
    if not snapshot.knows(asked.namespace):
        raise NotYet
    key = decisions.key(phase, asked, facts, text)
    kept = snapshot.memory.decided
    decided: Decided | None = kept.get(key)
    if decided is None:
        if max(work.items(asked.pod), work.items(asked.old_pod or {})) > work.MOST:
            return _overgrown(phase, asked, size, snapshot)
        decided = _decided(asked, asked.request(phase), facts)
        if key is not None:
            decisions.keep(kept, key, decided)
    live = awaited if decided.missing and snapshot.every_namespace else None
    if live is not None and live.waits(_named(asked.namespace, decided), monotonic()):
        raise NotYet
    if not asked.dry_run:
        metrics.count(decided.tally)
        logs.write("decision", "info", decided.told, **log_fields.whose(asked, phase))
    return decided.word, decided.answer(asked.uid)


def _named(namespace: str, decided: Decided) -> list[Claim]:
    return [(namespace, kind, name) for kind, name in decided.missing]


def _decided(asked: Review, request: Request, facts: Facts) -> Decided:
    try:
        verdict = evaluate(request, facts)
    except PodError as error:
        raise Unreadable(f"request.object is not shaped like a pod: {error}", f"write {error.wanted} there") from None
    return decisions.decided(asked, verdict, request.phase)


def _overgrown(phase: Phase, asked: Review | ClaimReview, size: int, snapshot: Snapshot) -> tuple[str, bytes]:
    """More is to be read than there is time for."""
    refused = unread.enforced(snapshot, asked.namespace)
    logs.write("too_large", "warning", phase=phase, uid=logs.cut(asked.uid), bytes=size, refused=refused)
    return _word(phase, refused), orjson.dumps(unread.overgrown(asked.uid, size=size, refused=refused))


def _unreadable(phase: str, body: bytes, snapshot: Snapshot, error: Unreadable) -> tuple[str, bytes]:
    """Something in it is not understood. Advice never refuses."""
    head = unread.head_of(body[:UID_BYTES])
    if head is None:
        raise error
    refused = phase != "advise" and head.enforced(snapshot)
    logs.write("unreadable", "warning", phase=phase, uid=logs.cut(head.uid), reason=logs.cut(error.sentence), refused=refused)
    return _word(phase, refused), orjson.dumps(unread.unreadable(head.uid, error.sentence, error.fix, refused=refused))


def too_large(phase: str, head: unread.Head, size: int, limit: int, snapshot: Snapshot) -> tuple[str, bytes]:
    """A review over the body cap, of which nothing is known but its head and how long it is."""
    refused = phase != "advise" and head.enforced(snapshot)
    logs.write("too_large", "warning", phase=phase, uid=logs.cut(head.uid), bytes=size, refused=refused)
    return _word(phase, refused), orjson.dumps(unread.oversized(head.uid, size=size, limit=limit, refused=refused))


def over_share(phase: str, head: unread.Head, snapshot: Snapshot) -> tuple[str, bytes]:
    """A review of a namespace that has had more than its share of the loop, and that was sent away before."""
    refused = phase != "advise" and head.enforced(snapshot)
    return _word(phase, refused), orjson.dumps(unread.over_share(head.uid, refused=refused))


def failed(phase: str, head: unread.Head, snapshot: Snapshot) -> bytes:
    """The answer to a review that a mistake of ours kept from being judged: refused where anything is enforced."""
    return orjson.dumps(unread.failed(head.uid, refused=phase != "advise" and head.enforced(snapshot)))


def _word(phase: str, refused: bool) -> str:
    return "refused" if refused else "advised" if phase == "advise" else "unmatched"


def workload(body: bytes, snapshot: Snapshot, metrics: Metrics, awaited: Awaited | None = None) -> tuple[str, bytes]:
    """A review of a workload: always allowed, with what its pods will meet as warnings. Raises ReviewError and NotYet."""
    try:
        asked = advise.parse(body)
    except Unreadable as error:
        return _unreadable("advise", body, snapshot, error)
    if not snapshot.knows(asked.namespace):
        raise NotYet
    sentences = advise.advise(asked, snapshot)
    if not asked.dry_run:
        logs.write("advice", **log_fields.of_advice(asked, sentences))
    return "advised", orjson.dumps(advise.answer(asked, sentences))
