"""The fields of a log line about a call: whose pod or workload it was, and what became of it.

Of a pod only its name is told, and what Berth itself would write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policies.request import Phase
from policies.verdict import Verdict
from webhook import logs
from webhook.advise import Advised
from webhook.claim_review import ClaimReview
from webhook.evidence import MOST_SAID, refusal_records, remark_records, would_records
from webhook.logs import cut
from webhook.review import Review

MOST_POLICIES = 100
"""named in a line, of those that match a pod"""


def whose(review: Review, phase: Phase) -> dict[str, Any]:
    """The fields of a decision's log line that differ from pod to pod."""
    return {
        "phase": phase,
        "operation": review.operation,
        "uid": cut(review.uid),
        "namespace": cut(review.namespace),
        "pod": cut(_name(review.pod)),
        "user": cut(review.user),
    }


def whose_claim(review: ClaimReview) -> dict[str, Any]:
    """The same of a claim or template, with its kind."""
    return {
        "phase": "validate",
        "operation": review.operation,
        "uid": cut(review.uid),
        "namespace": cut(review.namespace),
        "kind": review.kind,
        "name": cut(review.name),
        "user": cut(review.user),
    }


def of_decision(verdict: Verdict, phase: Phase, decided: str) -> bytes:
    """The other fields, as a JSON object: what was decided, by which policies, and what others would have done."""
    written = verdict.edits if verdict.patch and phase == "mutate" else ()
    return logs.encoded(
        {
            "decision": decided,
            "policies": list(verdict.matched[:MOST_POLICIES]),
            "edits": [{"rule": e.rule, "path": "/".join(map(str, e.path)), "policies": e.policies} for e in written[:MOST_SAID]],
            "editsInAll": len(written),
            "refusals": list(refusal_records(verdict.violations)),
            "remarks": list(remark_records(verdict.remarks)),
            "would": would_records(verdict),
            "notAudited": verdict.uncounted,
        }
    )


def of_advice(asked: Advised, sentences: Sequence[str]) -> dict[str, Any]:
    """The fields of the log line for a workload: whose, and the codes that were said."""
    return {
        "operation": asked.operation,
        "uid": cut(asked.uid),
        "namespace": cut(asked.namespace),
        "kind": cut(asked.kind),
        "name": cut(asked.name),
        "user": cut(asked.user),
        "codes": sorted({sentence[: len("BERTH-101")] for sentence in sentences}),
    }


def decision(verdict: Verdict, phase: Phase) -> str:
    """``refused``, ``patched``, ``admitted`` as it came, ``unmatched`` by any policy, or ``passed``: no accelerator is asked for."""
    if verdict.violations:
        return "refused"
    if not verdict.judged:
        return "passed"
    if verdict.patch and phase == "mutate":
        return "patched"
    return "admitted" if verdict.matched else "unmatched"


def _name(pod: dict[str, Any]) -> str:
    metadata = pod.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    return str(metadata.get("name") or metadata.get("generateName") or "")
