"""Verdicts as JSON records: for the audit annotations of the answer, and for the log line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from documents.printable import cut
from policies.verdict import AuditOutcome, Remark, Verdict, Violation

MOST_BYTES = 32 * 2**10
"""The most bytes of one annotation. Sixteen audited policies with a patch of 1 KiB each fit twice; the API
server itself sets no limit (its log backend cuts an event at 10 MiB when asked to)."""
MOST_RECORDS = 20
"""The most denials, and the most remarks, listed in full for each policy."""


def audit_records(verdict: Verdict) -> list[dict[str, Any]]:
    """Return one record per audited policy that would change something.

    Beyond the bytes reserved for patches, half of ``MOST_BYTES``, a record has the number of operations
    instead.
    """
    room = MOST_BYTES // 2
    records = []
    for outcome in verdict.audit_outcomes:
        if not (outcome.edits or outcome.dropped or outcome.violations or outcome.remarks):
            continue
        patch = orjson.dumps(outcome.patch)
        room -= len(patch)
        records.append(_audit_outcomes(outcome, with_patch=room >= 0))
    return records


def _audit_outcomes(outcome: AuditOutcome, *, with_patch: bool) -> dict[str, Any]:
    patch: dict[str, Any] = {"patch": outcome.patch} if with_patch else {"operations": len(outcome.patch)}
    return {
        "policy": outcome.policy,
        "mode": outcome.mode,
        **patch,
        "denials": list(denial_records(outcome.violations)),
        "remarks": list(remark_records(outcome.remarks)),
    }


def denial_records(violations: Sequence[Violation]) -> Iterator[dict[str, Any]]:
    """Yield the first twenty: code, rule, policies, fact."""
    for violation in violations[:MOST_RECORDS]:
        yield {"code": violation.code, "rule": violation.rule, "policies": violation.policies, "fact": cut(violation.fact)}


def remark_records(remarks: Sequence[Remark]) -> Iterator[dict[str, Any]]:
    """Yield the first twenty: code, rule, policies, text."""
    for remark in remarks[:MOST_RECORDS]:
        yield {"code": remark.code, "rule": remark.rule, "policies": remark.policies, "text": cut(remark.text)}
