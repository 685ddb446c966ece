"""What is kept of a decision: audit annotations that the API server takes, and a log line with no more than it needs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from analysis.reviews.audit_annotations import audit_annotations
from analysis.reviews.review import answer_review, parse
from analysis.reviews.verdict_records import MOST_BYTES
from policies.verdict import AuditOutcome, Edit, Verdict
from tests.support import worded

REVIEWS = Path(__file__).parent.parent.parent / "reviews"
REVIEW = parse((REVIEWS / "pods-create-train-llama.json").read_bytes())
EDIT = Edit(op="add", path=("spec", "tolerations", "-"), value={"key": "k"}, rule="tolerations", policies=("ClusterGPUPolicy/a",))
DENIAL = worded.denial("BERTH-101", "f", rule="requests_match_limits", policies=("ClusterGPUPolicy/a",))
PATCH = ({"op": "add", "path": "/spec/tolerations", "value": [{"key": "k"}]},)
QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
"""the name part of a qualified name (apimachinery util/validation), which an annotation's key must be"""


def audit_outcomes(policy: str = "ClusterGPUPolicy/audited", **fields: Any) -> AuditOutcome:
    return AuditOutcome(policy=policy, mode="Audit", **fields)


def test_keys_are_qualified_names() -> None:
    """The API server drops an annotation whose key is none."""
    annotations = audit_annotations(Verdict(violations=(DENIAL,), audit_outcomes=(audit_outcomes(violations=(DENIAL,)),)))
    assert list(annotations) == ["would", "denied"]
    assert all(QUALIFIED.fullmatch(key) and len(key) <= 63 for key in annotations)


def test_a_would_be_patch_is_kept_whole() -> None:
    """Who, in which mode, the patch, and what it would deny or say."""
    remark = worded.remark("BERTH-201", "t", rule="node_affinity")
    kept = json.loads(audit_annotations(Verdict(audit_outcomes=(audit_outcomes(edits=(EDIT,), patch=PATCH, remarks=(remark,)),)))["would"])
    assert kept == [
        {
            "policy": "ClusterGPUPolicy/audited",
            "mode": "Audit",
            "patch": list(PATCH),
            "denials": [],
            "remarks": [{"code": "BERTH-201", "rule": "node_affinity", "policies": [], "text": "t"}],
        }
    ]


def test_a_denial_is_kept() -> None:
    """By code, rule and policy, with its fact."""
    kept = json.loads(audit_annotations(Verdict(violations=(DENIAL,)))["denied"])
    assert kept == [{"code": "BERTH-101", "rule": "requests_match_limits", "policies": ["ClusterGPUPolicy/a"], "fact": "f"}]


def test_what_changes_nothing_is_not_kept() -> None:
    """An audited policy that would do nothing says nothing."""
    assert audit_annotations(Verdict(edits=(EDIT,), patch=PATCH, audit_outcomes=(audit_outcomes(),))) == {}


@pytest.mark.parametrize("number", [16, 1000])
def test_what_is_kept_is_bounded(number: int) -> None:
    """Patches give way to their length, then the list to its length: an audit event is no place for a megabyte."""
    big = ({"op": "add", "path": "/metadata/annotations/x", "value": "y" * 4000},)
    long = worded.denial("BERTH-101", "f" * 100_000)
    kept = audit_annotations(
        Verdict(audit_outcomes=tuple(audit_outcomes(f"ClusterGPUPolicy/{n}", patch=big, violations=(long,)) for n in range(number)))
    )["would"]
    assert len(kept) <= MOST_BYTES + 1000
    entries = json.loads(kept)
    assert "patch" in entries[0]
    assert entries[5]["operations"] == 1
    assert (entries[-1] == {"left": number - len(entries) + 1}) == (number == 1000)


def test_nothing_is_annotated_on_dry_run() -> None:
    """The answer is the same but for that."""
    verdict = Verdict(audit_outcomes=(audit_outcomes(violations=(DENIAL,)),))
    dry = parse(json.dumps(with_dry_run()).encode())
    assert "auditAnnotations" in answer_review(REVIEW, verdict)["response"]
    assert "auditAnnotations" not in answer_review(dry, verdict)["response"]


def with_dry_run() -> dict[str, Any]:
    review: dict[str, Any] = json.loads((REVIEWS / "pods-create-train-llama.json").read_text())
    review["request"]["dryRun"] = True
    return review
