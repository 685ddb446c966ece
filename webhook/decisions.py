"""What was decided, ready to be sent and told again: for the next pod that is alike in all that a decision reads.

The thousand pods of a Job differ in names and uids, those of two teams in images and commands; most are decided once. Nothing
is guessed: the key holds the very extract that the rules saw, byte for byte, and it is kept with the snapshot it was decided under.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from policies.actor import Caller, caller
from policies.kept import Kept
from policies.request import Phase, Request
from policies.snapshot import LONGEST_NAMESPACE, Facts
from policies.verdict import Verdict
from webhook import log_fields, review
from webhook.outcomes import Tally, tally
from webhook.review import Review

_UNTIL_UID = orjson.dumps({"apiVersion": review.API_VERSION, "kind": review.KIND, "response": {"uid": ""}})[: -len('""}}')]
_OVERHEAD = 1024
"""bytes of the objects around the texts of a decision"""


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
    missing: tuple[tuple[str, str], ...] = ()
    """``Verdict.missing``"""

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
        told=b"" if asked.dry_run else tight(log_fields.of_decision(verdict, phase, word)),
        tally=tally(phase, asked.operation, verdict),
        missing=verdict.missing,
    )


Key = tuple[Phase, bool, int, str, bytes, str, Caller, bytes]


def key(phase: Phase, asked: Review | Request, facts: Facts, text: bytes) -> Key | None:
    """All that the verdict depends on. ``text``: what is ``seen.seen`` of the pod. None where nothing is kept: of an update, of a
    pod that may name its node, and of a namespace whose name is longer than any."""
    if asked.operation != "CREATE" or len(facts.namespace) > LONGEST_NAMESPACE:
        return None
    if _may_be_pinned(asked.pod, text):
        return None
    try:
        namespace, claims = (facts.namespace, _claims(asked.pod, facts)) if b'"resourceClaims":' in text else ("", b"")
    except orjson.JSONEncodeError:  # a claim that is nested deeper than 254 levels
        return None
    user = asked.user if asked.user in facts.reads.users else ""
    return phase, asked.dry_run, facts.scope, namespace, claims, user, caller(asked.user, asked.groups), text


def _claims(pod: Mapping[str, Any], facts: Facts) -> bytes:
    """What the claims that the pod names ask for, as far as that is known: one that changes is another key, and drops nothing else."""
    known, spec = facts.snapshot.cluster.claims, pod.get("spec")
    listed = spec.get("resourceClaims") if isinstance(spec, dict) else None
    found = []
    for claim in listed if isinstance(listed, list) else ():
        for kind, field in _NAMED if isinstance(claim, dict) else ():
            name = claim.get(field)
            found.append(known.get((kind, facts.namespace, name)) if isinstance(name, str) else None)
    return orjson.dumps(found, default=_plain)


_NAMED = (("ResourceClaimTemplate", "resourceClaimTemplateName"), ("ResourceClaim", "resourceClaimName"))
"""k8s.io/api/core/v1 PodResourceClaim"""


def _plain(value: object) -> object:
    """A tuple of a claim's as JSON has it."""
    return [*value] if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else str(value)


def _may_be_pinned(pod: Mapping[str, Any], text: bytes) -> bool:
    """By nodeName or matchFields: it is decided by that node's labels, and no other pod is like it."""
    spec = pod.get("spec")
    return isinstance(spec, dict) and ("nodeName" in spec or ("affinity" in spec and b'"matchFields":[{' in text))


def keep(kept: Kept[Decided], key: Key, decision: Decided) -> None:
    """For the next one with this key."""
    *alike, claims, user, who, text = key
    kept.keep((*alike, tight(claims), user, who, tight(text)), decision, size(text, decision) + len(claims))


def tight(text: bytes) -> bytes:
    """A copy without the room that orjson leaves behind a text: 4 KiB with the shortest, for as long as it lives."""
    return bytes(memoryview(text))


def size(text: bytes, decision: Decided) -> int:
    """Bytes that keeping it takes, near enough."""
    return len(text) + len(decision.after_uid) + len(decision.told) + _OVERHEAD
