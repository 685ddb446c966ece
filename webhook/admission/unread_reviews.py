"""Reviews that were not read, or not to the end, and the answers to them.

With failurePolicy Ignore an error status would let such a pod pass, so that whoever writes an unreadable one
would escape the policies: it is answered, with a denial where any policy is in Enforce.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import orjson

from analysis.reviews.review import Unreadable, flatten_text, sent
from kube.review import Head, deny
from policies.messages import Phrase, phrase
from policies.pods.fractions import FRACTION_ENDS, FRACTIONS
from policies.pods.unlisted_accelerators import may_contain_name
from policies.state.snapshot import Snapshot
from policies.verdict import Remark
from policies.work_budget import MOST, MOST_READ
from registration.match_conditions import PatternError, prefixes


def may_deny(snapshot: Snapshot, namespace: str | None) -> bool:
    """Return whether a policy may deny in this namespace: policies of another namespace do not count. If it is unknown (None), or
    its labels are, any policy may."""
    if namespace is None or not snapshot.knows(namespace):
        return snapshot.enforces
    return snapshot.facts_for(namespace).enforces


def names_accelerator(body: bytes, snapshot: Snapshot) -> bool:
    """Return whether a pod may ask for what is judged, by the text of its review: the API server writes letters as they are."""
    return may_contain_name(body) or any(name.encode() in body for name in _names(snapshot))


def _names(snapshot: Snapshot) -> Iterator[str]:
    """Yield texts of which every review that is judged has one, besides names that look like accelerators; every review has "",
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


class Unjudged(NamedTuple):
    """Why a review was not judged: the code and the words of the message, and the status of a denial."""

    code: str
    words: Phrase
    status: int = 403
    reason: str = "Forbidden"


OVER_SHARE = Unjudged("BERTH-006", phrase("text"), 429, "TooManyRequests")
"""Its namespace is over its share of this replica's time."""
FAILED = Unjudged("BERTH-007", phrase("text"))
"""A bug in Berth."""


def too_large(size: int, limit: int | None) -> Unjudged:
    """Return that a review is over the body cap (``limit``, in bytes), or (``limit`` None) that more of it would have to be judged than is
    allowed."""
    code, words = (
        ("BERTH-004", phrase("text", size=size, most=MOST_READ, items=MOST))
        if limit is None
        else ("BERTH-003", phrase("text", size=size, limit=limit))
    )
    return Unjudged(code, words, 413, "RequestEntityTooLarge")


def unreadable(error: Unreadable) -> Unjudged:
    """Return that a review cannot be read."""
    return Unjudged("BERTH-005", phrase("text", why=flatten_text(error.sentence, 300), fix=error.fix))


def not_now(why: str) -> Unjudged:
    """Return that a review can't be judged now. ``why``: the name of a phrase of BERTH-008."""
    return Unjudged("BERTH-008", phrase(why), 429, "TooManyRequests")


def is_denied(phase: str, head: Head, snapshot: Snapshot) -> bool:
    """Return whether a review that is not judged is denied. Advice never denies."""
    return phase != "advise" and may_deny(snapshot, head.namespace)


def answer_unjudged(phase: str, head: Head, snapshot: Snapshot, cause: Unjudged) -> tuple[str, bytes]:
    """Return the decision in one word and the answer to a review that is not judged, by its head."""
    notice = Remark(code=cause.code, found=cause.words)
    if is_denied(phase, head, snapshot):
        return "denied", orjson.dumps(sent(deny(head.uid, f"{notice}.", code=cause.status, reason=cause.reason), []))
    word = "advised" if phase == "advise" else "unmatched"
    return word, orjson.dumps(sent({"uid": head.uid, "allowed": True}, [str(notice)]))
