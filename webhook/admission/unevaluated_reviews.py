"""The answers to reviews that are not evaluated: unreadable, too large, over a share, behind, or after an error of Berth.

With failurePolicy Ignore an error status would let such a pod pass, so that whoever writes an unreadable one
would escape the policies: it is answered, with a denial where any policy is in Enforce.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from analysis.reviews import claim_review
from analysis.reviews.decoding import TooLong
from analysis.reviews.review import Unreadable, flatten_text, sent
from documents.printable import cut
from kube.review import Head, allow, deny, head_of
from policies.messages import Phrase, phrase
from policies.pods.permissions import FRACTION_ENDS, FRACTIONS
from policies.pods.unlisted_accelerators import may_contain_name
from policies.state.snapshot import Snapshot
from policies.verdict import Remark
from policies.work_budget import MOST, MOST_READ
from registration.match_conditions import PatternError, prefixes
from server.limits import UID_BYTES
from telemetry import log


def may_deny(snapshot: Snapshot, namespace: str | None) -> bool:
    """Return whether a policy may deny in this namespace: policies of another namespace do not count. If it is unknown (None), or
    its labels are, any policy may."""
    if namespace is None or not snapshot.knows(namespace):
        return snapshot.enforces
    return snapshot.facts_for(namespace).enforces


def _names_accelerator(body: bytes, snapshot: Snapshot) -> bool:
    """Return whether a pod may request what is evaluated, by the text of its review: the API server writes letters as they are."""
    return may_contain_name(body) or any(name.encode() in body for name in _accelerator_texts(snapshot))


def _accelerator_texts(snapshot: Snapshot) -> Iterator[str]:
    """Yield texts of which every review that is evaluated has one, besides names that look like accelerators; every review has "",
    where a pattern may begin with anything."""
    catalog = snapshot.catalog
    for known in catalog.resources:
        try:
            yield from [known.name] if known.name is not None else prefixes(known.pattern.pattern)
        except PatternError:
            yield ""
    yield from (known.extended for known in snapshot.cluster.device_classes.values() if known.extended)
    yield from (f"{domain}/" for domain in catalog.accelerator_domains)
    yield from (*catalog.misspellings, *FRACTIONS, *FRACTION_ENDS, '"resourceClaims"')


class UnevaluatedCause(NamedTuple):
    """Why a review is not evaluated: the code and the words of the message, and the status of a denial."""

    code: str
    words: Phrase
    status: int = 403
    reason: str = "Forbidden"
    decision: str = ""
    """The decision in one word; "" if it is that of the answer."""
    event: str = ""
    """The event of the log line; "" if there is none, or the caller writes it."""
    logged: Mapping[str, Any] = {}


OVER_SHARE = UnevaluatedCause("BERTH-006", phrase("text"), 429, "TooManyRequests")
"""Its namespace is over its share of this replica's time."""
FAILED = UnevaluatedCause("BERTH-007", phrase("text"), decision="failed")
"""A bug in Berth."""
BEHIND = UnevaluatedCause("BERTH-008", phrase("behind"), 429, "TooManyRequests", decision="shed")
"""This replica is behind."""
UNKNOWN_NAMESPACE = UnevaluatedCause("BERTH-008", phrase("namespace"), 429, "TooManyRequests")
"""Its namespace is so new that its labels have not arrived."""


def too_large(size: int, limit: int | None) -> UnevaluatedCause:
    """Return that a review is over the body cap (``limit``, in bytes), or (``limit`` None) that evaluating it would take too much."""
    code, words = (
        ("BERTH-004", phrase("text", size=size, most=MOST_READ, items=MOST))
        if limit is None
        else ("BERTH-003", phrase("text", size=size, limit=limit))
    )
    return UnevaluatedCause(code, words, 413, "RequestEntityTooLarge", event="too_large", logged={"bytes": size})


def answer_unreadable(phase: str, body: bytes, snapshot: Snapshot, error: Unreadable) -> tuple[str, bytes]:
    """Return the decision in one word and the answer to a review that cannot be read. Raises the error if its head can't be read."""
    head = head_of(body[:UID_BYTES])
    if head is None:
        raise error
    by_class = head.group == claim_review.GROUP  # of any name
    if isinstance(error, TooLong) and not by_class and _is_denied(phase, head, snapshot) and not _names_accelerator(body, snapshot):
        return "passed", orjson.dumps(sent(allow(head.uid), []))
    words = phrase("text", why=flatten_text(error.sentence, 300), fix=error.fix)
    cause = UnevaluatedCause("BERTH-005", words, event="unreadable", logged={"reason": cut(error.sentence)})
    return answer_unevaluated(phase, head, snapshot, cause)


def answer_unevaluated(phase: str, head: Head, snapshot: Snapshot, cause: UnevaluatedCause) -> tuple[str, bytes]:
    """Return the decision in one word and the answer to a review that is not evaluated, by its head: denied if a policy may deny,
    else allowed with a warning."""
    denied = _is_denied(phase, head, snapshot)
    if cause.event:
        log.write(cause.event, "warning", phase=phase, uid=cut(head.uid), **cause.logged, denied=denied)
    notice = Remark(code=cause.code, found=cause.words)
    if denied:
        word, answer = "denied", sent(deny(head.uid, f"{notice}.", code=cause.status, reason=cause.reason), [])
    else:
        word, answer = "advised" if phase == "advise" else "unmatched", sent(allow(head.uid), [str(notice)])
    return cause.decision or word, orjson.dumps(answer)


def _is_denied(phase: str, head: Head, snapshot: Snapshot) -> bool:
    """Return whether a review that is not evaluated is denied. Advice never denies."""
    return phase != "advise" and may_deny(snapshot, head.namespace)
