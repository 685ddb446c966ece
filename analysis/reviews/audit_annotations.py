"""The audit annotations of an answer: what was denied, and what policies in Audit and Warn would have done.

The API server puts the webhook's name before each annotation's key, keeps the value of the first round only,
and stores all of them in the audit event of the request (kubernetes v1.36 apiserver/pkg/admission/audit.go).
A dry run gets none.
"""

from __future__ import annotations

from typing import Any

import orjson

from analysis.reviews.verdict_records import MOST_BYTES, audit_records, denial_records
from policies.verdict import Verdict

WOULD = "would"
"""Key of what each policy in Audit or Warn would have done: a JSON list of policy, mode, patch, denials,
remarks."""
DENIED = "denied"
"""Key of why policies in Enforce denied the pod: a JSON list of code, rule, policies, fact."""


def audit_annotations(verdict: Verdict) -> dict[str, str]:
    """Return the annotations by key, without empty ones."""
    annotations: dict[str, str] = {}
    audit_outcomes = audit_records(verdict)
    if audit_outcomes:
        annotations[WOULD] = _json(audit_outcomes)
    if verdict.violations:
        annotations[DENIED] = _json(list(denial_records(verdict.violations)))
    return annotations


def _json(value: list[dict[str, Any]]) -> str:
    """Return compact JSON; beyond the limit the list loses its end, and its last item counts what is left
    out."""
    text = orjson.dumps(value)
    kept = len(value)
    while len(text) > MOST_BYTES and kept:
        kept -= 1
        text = orjson.dumps([*value[:kept], {"left": len(value) - kept}])
    return text.decode("utf-8")
