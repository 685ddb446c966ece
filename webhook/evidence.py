"""What is kept of a decision, as records: for the audit annotations of the answer, and for the log line.

The API server puts the webhook's name before each annotation's key, keeps the value of the first round only, and stores
all of them in the audit event of the request (kubernetes v1.36 apiserver/pkg/admission/audit.go). Nothing is kept of a dry run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from policies.verdict import Remark, Verdict, Violation, Would
from webhook.logs import cut

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
        found[REFUSED] = _json(list(refusal_records(verdict.violations)))
    return found


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
        "refusals": list(refusal_records(would.violations)),
        "remarks": list(remark_records(would.remarks)),
    }


def refusal_records(violations: Sequence[Violation]) -> Iterator[dict[str, Any]]:
    """The first twenty: code, rule, policies, fact."""
    for violation in violations[:MOST_SAID]:
        yield {"code": violation.code, "rule": violation.rule, "policies": violation.policies, "fact": cut(violation.fact)}


def remark_records(remarks: Sequence[Remark]) -> Iterator[dict[str, Any]]:
    """The first twenty: code, rule, policies, text."""
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
