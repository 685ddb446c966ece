"""The fields of a log line about a call: the pod or workload, and the decision.

Of a pod only its name is logged, and what Berth itself would write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analysis.reviews.verdict_records import MOST_RECORDS, audit_records, denial_records, remark_records
from documents.printable import cut
from policies.request import Phase
from policies.verdict import Verdict
from telemetry import log

if TYPE_CHECKING:
    from analysis.reviews.review import ObjectReview
    from analysis.reviews.workload_advice import Advice
    from policies.request import Request

MOST_POLICIES = 100
"""The most matching policies that a line names."""


def whose(review: Request, phase: Phase) -> dict[str, Any]:
    """Return the fields of a decision's log line that differ from pod to pod."""
    return {
        "phase": phase,
        "operation": review.operation,
        "uid": cut(review.uid),
        "namespace": cut(review.namespace),
        "pod": cut(_name(review.pod)),
        "user": cut(review.user),
    }


def whose_object(asked: ObjectReview, phase: Phase) -> dict[str, Any]:
    """Return the same fields for a claim, a template or a workload, with its kind."""
    return {"phase": phase, **_object(asked)}


def _object(asked: ObjectReview) -> dict[str, Any]:
    return {
        "operation": asked.operation,
        "uid": cut(asked.uid),
        "namespace": cut(asked.namespace),
        "kind": cut(asked.kind),
        "name": cut(asked.name),
        "user": cut(asked.user),
    }


def of_decision(verdict: Verdict, phase: Phase, decided: str) -> bytes:
    """Return the other fields, as a JSON object: the decision, its policies, and what others would have done."""
    written = verdict.edits if verdict.patch and phase == "mutate" else ()
    return log.encoded(
        {
            "decision": decided,
            "policies": list(verdict.matched[:MOST_POLICIES]),
            "edits": [{"rule": e.rule, "path": "/".join(map(str, e.path)), "policies": e.policies} for e in written[:MOST_RECORDS]],
            "editsInAll": len(written),
            "denials": list(denial_records(verdict.violations)),
            "remarks": list(remark_records(verdict.remarks)),
            "would": audit_records(verdict),
            "notAudited": verdict.uncounted,
        }
    )


def of_advice(asked: ObjectReview, advice: Sequence[Advice]) -> dict[str, Any]:
    """Return the fields of the log line for a workload: the object, the user, and the codes of the advice."""
    return {**_object(asked), "codes": sorted({one.code for one in advice})}


def decision_word(verdict: Verdict, phase: Phase) -> str:
    """Return the decision in one word.

    It is ``denied``, ``patched``, ``admitted`` unchanged, ``unmatched`` by any policy, or ``passed``: no
    accelerator is requested.
    """
    if verdict.violations:
        return "denied"
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
