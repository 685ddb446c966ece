"""One pod through both phases."""

from __future__ import annotations

from typing import Any

from analysis.admission_preview import AdmittedPod, preview_admission
from policies.request import Request
from tests.support import snapshots
from tests.support.cases import golden

CATALOG = golden.catalog_with()
EQUAL = {"require": {"requestsEqualLimits": ["accelerators"]}}
MEND = {"default": {"repair": ["accelerators"]}}
FORBID = {"require": {"tolerations": {"forbid": [{"key": "team", "value": "other"}]}}}


def judged(pod: dict[str, Any], *specs: dict[str, Any], **request: Any) -> AdmittedPod:
    objects = [
        {"kind": "ClusterGPUPolicy", "metadata": {"name": f"p{i}"}, "spec": {"mode": "Enforce", **spec}} for i, spec in enumerate(specs)
    ]
    built = snapshots.build(golden.policies_of(objects, CATALOG), CATALOG, platforms=["karpenter-aws"])
    return preview_admission(Request(namespace="ml", pod=pod, **request), built.facts_for("ml"))


def pod(limit: str = "2", **spec: Any) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": limit}, "requests": {"nvidia.com/gpu": "1"}}
    return {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": resources}], **spec}}


def test_what_mutate_denies_is_the_answer() -> None:
    """The second phase is never reached, as in a cluster."""
    both = judged(pod(), EQUAL)
    assert [v.code for v in both.violations] == ["BERTH-101"]
    assert both.violations == both.mutate.violations


def test_validate_judges_the_pod_as_edited() -> None:
    """What an edit mended is not denied, and the given pod stays as it came."""
    asked = pod()
    both = judged(asked, EQUAL, MEND)
    assert (both.violations, both.is_evaluated) == ((), True)
    assert asked == pod()
    assert [edit.value for edit in both.mutate.edits] == ["2"]


def test_an_update_is_only_validated() -> None:
    """Of an update tolerations alone are judged, and nothing is written."""
    gained = [{"key": "team", "operator": "Equal", "value": "other"}]
    both = judged(pod(tolerations=gained), EQUAL, FORBID, operation="UPDATE", old_pod=pod())
    assert {v.rule for v in both.violations} == {"tolerations"}


def test_a_pod_without_accelerators_is_not_judged() -> None:
    """Nothing is said of it."""
    both = judged({"spec": {"containers": [{"name": "c"}]}}, EQUAL)
    assert (both.is_evaluated, both.violations, both.remarks) == (False, (), ())
