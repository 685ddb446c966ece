"""What was decided, ready to be sent and told again: for the next pod that is alike in all that a decision reads.

The thousand pods of a Job differ in names and uids, those of two teams in images and commands; most are decided once. Nothing
is guessed: the key holds the very extract that the rules saw, byte for byte, and it is kept with the snapshot it was decided under.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import orjson

from policies.request import Phase, Request
from policies.snapshot import Facts
from policies.verdict import Verdict
from webhook import log_fields, review
from webhook.outcomes import Tally, tally
from webhook.review import Review

_UNTIL_UID = orjson.dumps({"apiVersion": review.API_VERSION, "kind": review.KIND, "response": {"uid": ""}})[: -len('""}}')]
_OVERHEAD = 1024
"""bytes of the objects around the texts of a decision"""
_LOOSE = 2
"""Resident bytes for each byte of text, as measured over 12,000 decisions: texts of all lengths that come and go leave gaps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One decision without whose it is."""

    word: str
    """``log_fields.decision``"""
    after_uid: bytes
    """of the AdmissionReview"""
    told: bytes
    """fields of the log line, as a JSON object"""
    tally: Tally

    def answer(self, uid: str) -> bytes:
        """The AdmissionReview for the call with this uid."""
        return _UNTIL_UID + orjson.dumps(uid) + self.after_uid


def decided(asked: Review, verdict: Verdict, phase: Phase) -> Decided:
    """What a verdict comes to on the wire, in the log and in the metrics."""
    word = log_fields.decision(verdict, phase)
    answer = orjson.dumps(review.answer(asked, verdict, phase=phase))
    return Decided(
        word=word,
        after_uid=answer[len(_UNTIL_UID) + len(orjson.dumps(asked.uid)) :],
        told=b"" if asked.dry_run else log_fields.of_decision(verdict, phase, word),
        tally=tally(phase, asked.operation, verdict),
    )


def key(request: Request, facts: Facts, text: bytes) -> Hashable | None:
    """All that the verdict depends on. ``text``: what is ``seen.seen`` of the pod. None where nothing is kept: of an update."""
    if request.operation != "CREATE":
        return None
    claims = b'"resourceClaims":' in text  # they are found by namespace
    user = request.user if request.user in facts.snapshot.reads.users else ""
    return request.phase, request.dry_run, facts.scope, facts.namespace if claims else "", user, text


def size(text: bytes, decision: Decided) -> int:
    """Bytes that keeping it takes, near enough."""
    return _LOOSE * (len(text) + len(decision.after_uid) + len(decision.told)) + _OVERHEAD
