"""What is kept of a decision: the audit annotations of the answer, and the fields of its log line.

The API server puts the webhook's name before each annotation's key, keeps the value of the first round only, and stores
all of them in the audit event of the request (kubernetes v1.36 apiserver/pkg/admission/audit.go). Nothing is kept of a dry run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from policies.request import Phase
from policies.verdict import Edit, Remark, Verdict, Violation, Would
from webhook.logs import cut

if TYPE_CHECKING:
    from webhook.advise import Advised
    from webhook.review import Review

WOULD = "would"
"""What each policy in Audit or Warn would have done: a JSON list of policy, mode, patch, refusals, remarks."""
REFUSED = "refused"
"""Why the pod was refused by policies in Enforce: a JSON list of code, rule, policies, fact."""
MOST_BYTES = 32 * 2**10
"""Of one annotation. Sixteen audited policies with a patch of 1 KiB each fit twice; the API server itself sets no limit
(its log backend cuts an event at 10 MiB when asked to)."""
MOST_SAID = 20
"""refusals and remarks told in full, of each policy"""


def audit_annotations(verdict: Verdict) -> dict[str, str]:
    """By key, as the answer carries them: only what says something."""
    found: dict[str, str] = {}
    would = would_records(verdict)
    if would:
        found[WOULD] = _json(would)
    if verdict.violations:
        found[REFUSED] = _json(list(_refusals(verdict.violations)))
    return found


def decision_fields(review: Review, verdict: Verdict, phase: Phase, decided: str) -> dict[str, Any]:
    """The fields of a decision's log line: for whom, what was decided, by which policies, and what others would have done."""
    return {
        "phase": phase,
        "operation": review.operation,
        "uid": cut(review.uid),
        "namespace": cut(review.namespace),
        "pod": cut(_name(review.pod)),
        "user": cut(review.user),
        "decision": decided,
        "policies": list(verdict.matched),
        "edits": [{"rule": e.rule, "path": "/".join(map(str, e.path)), "policies": e.policies} for e in _written(verdict, phase)],
        "refusals": list(_refusals(verdict.violations)),
        "remarks": list(_remarks(verdict.remarks)),
        "would": would_records(verdict),
        "notAudited": verdict.uncounted,
    }


def advice_fields(asked: Advised, sentences: Sequence[str]) -> dict[str, Any]:
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


def would_records(verdict: Verdict) -> list[dict[str, Any]]:
    """Of each audited policy that would change something: within 32 KiB of patches, after that how many operations."""
    room = MOST_BYTES // 2
    records = []
    for would in verdict.would:
        if not (would.edits or would.violations or would.remarks):
            continue
        patch = orjson.dumps(would.patch)
        room -= len(patch)
        records.append(_would(would, with_patch=room >= 0))
    return records


def _would(would: Would, *, with_patch: bool) -> dict[str, Any]:
    patch: dict[str, Any] = {"patch": would.patch} if with_patch else {"operations": len(would.patch)}
    return {
        "policy": would.policy,
        "mode": would.mode,
        **patch,
        "refusals": list(_refusals(would.violations)),
        "remarks": list(_remarks(would.remarks)),
    }


def _refusals(violations: Sequence[Violation]) -> Iterator[dict[str, Any]]:
    for violation in violations[:MOST_SAID]:
        yield {"code": violation.code, "rule": violation.rule, "policies": violation.policies, "fact": cut(violation.fact)}


def _remarks(remarks: Sequence[Remark]) -> Iterator[dict[str, Any]]:
    for remark in remarks[:MOST_SAID]:
        yield {"code": remark.code, "rule": remark.rule, "policies": remark.policies, "text": cut(remark.text)}


def _json(value: list[dict[str, Any]]) -> str:
    """Compact; past the limit the list loses its end, and says how much."""
    text = orjson.dumps(value)
    kept = len(value)
    while len(text) > MOST_BYTES and kept:
        kept -= 1
        text = orjson.dumps([*value[:kept], {"left": len(value) - kept}])
    return text.decode("utf-8")


def _written(verdict: Verdict, phase: Phase) -> tuple[Edit, ...]:
    return verdict.edits if verdict.patch and phase == "mutate" else ()


def _name(pod: dict[str, Any]) -> str:
    metadata = pod.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    return str(metadata.get("name") or metadata.get("generateName") or "")
