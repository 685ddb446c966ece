"""The fields of a log line: whose pod, what was decided, and no more than that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.reviews.audit_annotations import audit_annotations
from analysis.reviews.review import parse
from analysis.reviews.verdict_records import audit_records
from policies.verdict import AuditOutcome, Edit, Verdict
from tests.support import worded
from webhook.admission import log_fields
from webhook.admission.log_fields import decision_word, of_decision

REVIEW = parse((Path(__file__).parent.parent.parent / "reviews" / "pods-create-train-llama.json").read_bytes())
EDIT = Edit(op="add", path=("spec", "tolerations", "-"), value={"key": "k"}, rule="tolerations", policies=("ClusterGPUPolicy/a",))
DENIAL = worded.denial("BERTH-101", "f", rule="requests_match_limits", policies=("ClusterGPUPolicy/a",))
PATCH = ({"op": "add", "path": "/spec/tolerations", "value": [{"key": "k"}]},)


def audit_outcomes(**fields: Any) -> AuditOutcome:
    return AuditOutcome(policy="ClusterGPUPolicy/audited", mode="Audit", **fields)


@pytest.mark.parametrize(
    ("verdict", "phase", "word"),
    [
        (Verdict(judged=False), "mutate", "passed"),
        (Verdict(), "mutate", "unmatched"),
        (Verdict(matched=("p",)), "mutate", "admitted"),
        (Verdict(matched=("p",), edits=(EDIT,), patch=PATCH), "mutate", "patched"),
        (Verdict(matched=("p",), edits=(EDIT,), patch=PATCH), "validate", "admitted"),
        (Verdict(matched=("p",), violations=(DENIAL,)), "validate", "denied"),
    ],
)
def test_a_decision_is_one_word(verdict: Verdict, phase: Any, word: str) -> None:
    """The same in the log and in the metrics."""
    assert decision_word(verdict, phase) == word


def test_a_line_tells_whose_pod_and_who_decided() -> None:
    """And what was written where; never what the pod is made of."""
    verdict = Verdict(matched=("ClusterGPUPolicy/a",), edits=(EDIT,), patch=PATCH, violations=(), uncounted=2)
    fields = {**log_fields.whose(REVIEW, "mutate"), **json.loads(of_decision(verdict, "mutate", "patched"))}
    assert (fields["namespace"], fields["pod"], fields["notAudited"]) == ("default", "train-llama-", 2)
    assert fields["edits"] == [{"rule": "tolerations", "path": "spec/tolerations/-", "policies": ["ClusterGPUPolicy/a"]}]
    assert "nginx" not in json.dumps(fields)


def test_would_records_are_those_of_the_annotation() -> None:
    """The log and the audit log tell the same."""
    verdict = Verdict(audit_outcomes=(audit_outcomes(edits=(EDIT,), patch=PATCH),))
    assert json.loads(audit_annotations(verdict)["would"]) == json.loads(json.dumps(audit_records(verdict)))
    assert json.loads(of_decision(verdict, "mutate", "unmatched"))["would"] == json.loads(json.dumps(audit_records(verdict)))


def test_a_pod_without_a_name_has_an_empty_one() -> None:
    """Whatever is in its place."""
    assert [log_fields._name(pod) for pod in ({}, {"metadata": 7}, {"metadata": {"generateName": "a-"}})] == ["", "", "a-"]
