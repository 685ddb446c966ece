"""A cache of decisions, as sent and logged, for the next pod that is alike in everything that a decision
reads; and the fields of the log line about a call. Of a pod only its name is logged, and what Berth itself would write.

The thousand pods of a Job differ in names and uids, those of two teams in images and commands; most are
decided once. Nothing is guessed: the key contains the very extract that the rules read, byte for byte, and
``webhook.reload.activation`` puts a new cache in its place when a new snapshot would decide otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from analysis.reviews import review
from analysis.reviews.review import ObjectRequest
from analysis.reviews.verdict_records import MOST_RECORDS, audit_records, denial_records, remark_records
from analysis.reviews.workload_advice import Advice
from documents.printable import cut
from kube.review import API_VERSION, KIND
from policies.facts.places import KnownPlaces
from policies.lru import LruCache
from policies.messages import console_link
from policies.pods.actors import Caller, caller
from policies.request import Phase, Request
from policies.state.snapshot import LONGEST_NAMESPACE, NamespaceFacts, NamespaceScope
from policies.verdict import Verdict
from telemetry import log
from telemetry.policy_metrics import OutcomeTally, tally

_UNTIL_UID = orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": {"uid": ""}})[: -len('""}}')]
_OVERHEAD = 1024
"""Bytes of the objects around the texts of a decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecision:
    """One decision, without the fields that identify the pod."""

    word: str
    """The result of ``decision_word``."""
    after_uid: bytes
    """The part of the AdmissionReview after the uid."""
    logged: bytes
    """Fields of the log line, as a JSON object."""
    tally: OutcomeTally
    missing: tuple[tuple[str, str], ...] = ()
    """The same as ``Verdict.missing``."""

    def answer(self, uid: str) -> bytes:
        """Return the AdmissionReview for the call with this uid."""
        return _UNTIL_UID + orjson.dumps(uid) + self.after_uid


def store_verdict(request: Request, verdict: Verdict, phase: Phase, console_url: str = "") -> StoredDecision:
    """Return a verdict's form on the wire, in the log and in the metrics. ``console_url``: of the snapshot."""
    workload = console_link.controller(request.namespace, request.pod) if console_url else ""
    word = decision_word(verdict, phase)
    answer = orjson.dumps(review.answer_review(request, verdict, phase=phase, console_url=console_url, workload=workload))
    return StoredDecision(
        word=word,
        after_uid=answer[len(_UNTIL_UID) + len(orjson.dumps(request.uid)) :],
        logged=b"" if request.dry_run else tight(decision_fields(verdict, phase, word)),
        tally=tally(phase, request.operation, verdict),
        missing=verdict.missing,
    )


Decisions = LruCache[StoredDecision]
"""The decisions of a replica, under the snapshot in force."""
_MOST_DECIDED = 16 * 2**20
"""Bytes of the cache: some 1,600 decisions of 10 KiB, enough for one namespace, or for two of each of a
thousand."""


def empty_decisions() -> Decisions:
    """Return an empty cache, for the start and for when the cached decisions no longer hold."""
    return LruCache(_MOST_DECIDED)


Key = tuple[Phase, bool, NamespaceScope, KnownPlaces | None, int, str, bytes, str, Caller, bytes]


def decision_key(phase: Phase, request: Request, facts: NamespaceFacts, text: bytes) -> Key | None:
    """Return everything that the verdict depends on.

    ``text``: the extract of the pod, ``encoded``. Returns None for what is not cached: an update, a pod that
    may name its node, and a namespace whose name is longer than any.
    """
    if request.operation != "CREATE" or len(facts.namespace) > LONGEST_NAMESPACE:
        return None
    if _may_be_pinned(request.pod, text):
        return None
    try:
        namespace, claims = (facts.namespace, _claims(request.pod, facts)) if b'"resourceClaims":' in text else ("", b"")
    except orjson.JSONEncodeError:  # a claim that is nested deeper than 254 levels
        return None
    if facts.snapshot.console_url:  # the answer may name the workload
        namespace = f"{namespace} {console_link.controller(facts.namespace, request.pod)}"
    user = request.user if request.user in facts.reads.users else ""
    return (
        phase,
        request.dry_run,
        facts.scope,
        facts.snapshot.known_places,
        facts.snapshot.known_slices,
        namespace,
        claims,
        user,
        caller(request.user, request.groups),
        text,
    )


def _claims(pod: Mapping[str, Any], facts: NamespaceFacts) -> bytes:
    """Return the requests of the claims that the pod names, as far as they are known.

    A claim that changes yields another key, and evicts nothing else.
    """
    known, spec = facts.snapshot.cluster.claims, pod.get("spec")
    listed = spec.get("resourceClaims") if isinstance(spec, dict) else None
    requests = []
    for claim in listed if isinstance(listed, list) else ():
        for kind, field in _NAMED if isinstance(claim, dict) else ():
            name = claim.get(field)
            requests.append(known.get((kind, facts.namespace, name)) if isinstance(name, str) else None)
    return orjson.dumps(requests, default=_plain)


_NAMED = (("ResourceClaimTemplate", "resourceClaimTemplateName"), ("ResourceClaim", "resourceClaimName"))
"""Kinds and fields of k8s.io/api/core/v1 PodResourceClaim."""


def _plain(value: object) -> object:
    """Return a value of a claim in the form that JSON has for it."""
    return [*value] if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else str(value)


def _may_be_pinned(pod: Mapping[str, Any], text: bytes) -> bool:
    """Return whether nodeName or matchFields may pin the pod to a node.

    Such a pod is decided by that node's labels, and no other pod is like it.
    """
    spec = pod.get("spec")
    return isinstance(spec, dict) and ("nodeName" in spec or ("affinity" in spec and b'"matchFields":[{' in text))


def keep(decisions: Decisions, key: Key, decision: StoredDecision) -> None:
    """Store a decision for the next pod with this key."""
    *alike, claims, user, who, text = key
    decisions.keep((*alike, tight(claims), user, who, tight(text)), decision, size(text, decision) + len(claims))


def tight(text: bytes) -> bytes:
    """Return a copy without the buffer that orjson leaves behind a text: 4 KiB even for the shortest, for as
    long as it lives."""
    return bytes(memoryview(text))


def size(text: bytes, decision: StoredDecision) -> int:
    """Return the approximate bytes that a cached decision takes."""
    return len(text) + len(decision.after_uid) + len(decision.logged) + _OVERHEAD


MOST_POLICIES = 100
"""The most matching policies that a line names."""


def pod_fields(request: Request, phase: Phase) -> dict[str, Any]:
    """Return the fields of a decision's log line that differ from pod to pod."""
    return {
        "phase": phase,
        "operation": request.operation,
        "uid": cut(request.uid),
        "namespace": cut(request.namespace),
        "pod": cut(_name(request.pod)),
        "user": cut(request.user),
    }


def object_fields(request: ObjectRequest, phase: Phase) -> dict[str, Any]:
    """Return the same fields for a claim, a template or a workload, with its kind."""
    return {"phase": phase, **_object(request)}


def _object(request: ObjectRequest) -> dict[str, Any]:
    return {
        "operation": request.operation,
        "uid": cut(request.uid),
        "namespace": cut(request.namespace),
        "kind": cut(request.kind),
        "name": cut(request.name),
        "user": cut(request.user),
    }


def decision_fields(verdict: Verdict, phase: Phase, word: str) -> bytes:
    """Return the other fields, as a JSON object: the decision, its policies, and what others would have done."""
    written = verdict.edits if verdict.patch and phase == "mutate" else ()
    return log.encoded(
        {
            "decision": word,
            "policies": list(verdict.matched[:MOST_POLICIES]),
            "edits": [{"rule": e.rule, "path": "/".join(map(str, e.path)), "policies": e.policies} for e in written[:MOST_RECORDS]],
            "editsInAll": len(written),
            "denials": list(denial_records(verdict.violations)),
            "remarks": list(remark_records(verdict.remarks)),
            "would": audit_records(verdict),
            "notAudited": verdict.uncounted,
        }
    )


def advice_fields(request: ObjectRequest, advice: Sequence[Advice]) -> dict[str, Any]:
    """Return the fields of the log line for a workload: the object, the user, and the codes of the advice."""
    return {**_object(request), "codes": sorted({sentence.code for sentence in advice})}


def decision_word(verdict: Verdict, phase: Phase) -> str:
    """Return the decision in one word.

    It is ``denied``, ``patched``, ``admitted`` unchanged, or ``unmatched`` by any policy. Where no policy is read it is ``restored``:
    an update keeps what policies wrote, or ``passed``: no accelerator is requested, or nothing is to be restored.
    """
    if verdict.violations:
        return "denied"
    if not verdict.is_evaluated:
        return "restored" if verdict.patch and phase == "mutate" else "passed"
    if verdict.patch and phase == "mutate":
        return "patched"
    return "admitted" if verdict.matched else "unmatched"


def _name(pod: dict[str, Any]) -> str:
    metadata = pod.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    return str(metadata.get("name") or metadata.get("generateName") or "")
