"""One JSON line per event, on stderr: an event's name and its fields.

Names come from outside: JSON escapes keep a newline from forging a second line, and long texts are cut. Environment
variables and other contents of pods are never logged.
"""

from __future__ import annotations

import sys
from typing import Any, TextIO

import orjson

from policies.verdict import Verdict
from webhook.review import Phase, Review

TEXT_LENGTH = 256
"""Longer than every name Kubernetes allows (253): only what is no name is cut."""


def write(event: str, *, stream: TextIO | None = None, **fields: object) -> None:
    """``{"event": ..., **fields}`` as one line."""
    line = orjson.dumps({"event": event, **fields}, default=str).decode("utf-8")
    print(line, file=stream or sys.stderr, flush=True)


def decision(review: Review, verdict: Verdict, phase: Phase) -> dict[str, Any]:
    """The fields of a decision: for whom, allowed or not, the codes, which policies, and what Audit and Warn would do."""
    return {
        "phase": phase,
        "operation": review.operation,
        "uid": cut(review.uid),
        "namespace": cut(review.namespace),
        "pod": cut(_name(review.pod)),
        "user": cut(review.user),
        "dryRun": review.dry_run,
        "allowed": not verdict.violations,
        "edits": len(verdict.edits),
        "refusals": [v.code for v in verdict.violations],
        "remarks": [r.code for r in verdict.remarks],
        "policies": list(verdict.matched),
        "would": [
            {"policy": w.policy, "mode": w.mode, "edits": len(w.edits), "refusals": [v.code for v in w.violations]} for w in verdict.would
        ],
    }


def cut(text: str) -> str:
    """At most 256 characters."""
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 3] + "..."


def _name(pod: dict[str, Any]) -> str:
    metadata = pod.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    return str(metadata.get("name") or metadata.get("generateName") or "")
