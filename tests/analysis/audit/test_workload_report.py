"""The report of one workload: each outcome once, bounded, and the same for the same pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analysis.audit.outcomes import AuditResult, Finding
from analysis.audit.stored_pod import StoredPod
from analysis.audit.workload_report import (
    MOST_NAMED,
    MOST_PATCHES,
    MOST_RESULTS,
    OPEN_REPORTS,
    POLICY_REPORTS,
    ReportedWorkload,
    count_by_result,
    group_by_outcome,
    report,
)

JOB = ReportedWorkload("batch/v1", "Job", "team-a", "train", "u1")
BARE = ReportedWorkload("v1", "Namespace", "team-a", "team-a", "")


def outcome(finding: Finding = "would-change", **given: Any) -> AuditResult:
    denies = finding in ("would-deny", "no-longer-fits")
    base = AuditResult(
        policies=("ClusterGPUPolicy/a",),
        mode="Audit",
        finding=finding,
        rules=("checkpoint_grace",),
        codes=("BERTH-104",) if denies else (),
        texts=("BERTH-104: a fact; a fix.",) if denies else (),
        paths=() if denies else ("terminationGracePeriodSeconds",),
        dropped=(),
        patch="" if denies else '[{"op":"replace"}]',
    )
    return base._replace(**given)


def pods(count: int, node: str = "n") -> list[StoredPod]:
    return [
        StoredPod(namespace="team-a", name=f"p{n}", uid=str(n), owner=None, node=node, finished=False, created="", shared=b"{}")
        for n in range(count)
    ]


def made(*outcomes: AuditResult, workload: ReportedWorkload = JOB, count: int = 3, api_version: str = OPEN_REPORTS) -> dict[str, Any]:
    found = group_by_outcome((pod, one, 2, 1.5) for one in outcomes for pod in pods(count))
    return report(workload, found, count_by_result([outcomes] * count), api_version)


def test_pods_with_one_outcome_are_one_result() -> None:
    """With their number, devices and price, and the patch that each of them would get."""
    (result,) = made(outcome())["results"]
    assert result["properties"] == {
        "finding": "would-change",
        "mode": "Audit",
        "pods": "3",
        "gpus": "6",
        "usdPerHour": "4.50",
        "patch": '[{"op":"replace"}]',
    }
    assert (result["policy"], result["rule"], result["result"]) == ("ClusterGPUPolicy/a", "checkpoint_grace", "warn")
    assert result["message"] == "In Enforce it would write terminationGracePeriodSeconds."


def test_what_it_keeps_from_others_is_a_change_too() -> None:
    """Two defaults that differ: neither sets anything then."""
    one, both = (made(outcome(paths=paths, dropped=("affinity",)))["results"][0]["message"] for paths in ((), ("tolerations",)))
    assert one == "In Enforce it would prevent other policies from writing affinity."
    assert both == "In Enforce it would write tolerations and would prevent other policies from writing affinity."


def test_a_denial_fails_and_comes_first() -> None:
    """With its codes and sentences; what policies in Enforce would deny today comes before what others would."""
    found = made(outcome(), outcome("would-deny"), outcome("no-longer-fits", mode="Enforce"), outcome("not-as-enforced", mode="Enforce"))
    assert [(one["result"], one["properties"]["finding"]) for one in found["results"]] == [
        ("fail", "no-longer-fits"),
        ("fail", "would-deny"),
        ("warn", "not-as-enforced"),
        ("warn", "would-change"),
    ]
    assert found["summary"] == {"pass": 0, "fail": 3, "warn": 0}
    assert found["results"][1]["properties"]["codes"] == "BERTH-104"
    assert found["results"][1]["message"].startswith("BERTH-104: a fact; a fix")


def test_it_goes_with_its_workload() -> None:
    """By an owner reference; that of pods that nobody owns is of their namespace, and names some of them."""
    assert made(outcome())["metadata"]["ownerReferences"] == [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u1"}]
    bare = made(outcome(), workload=BARE, count=40)
    assert "ownerReferences" not in bare["metadata"]
    assert bare["scope"] == {"apiVersion": "v1", "kind": "Namespace", "name": "team-a"}
    assert [one["name"] for one in bare["results"][0]["resources"]] == [f"p{n}" for n in range(MOST_NAMED)]


def test_workloads_of_one_name_have_different_reports() -> None:
    """Of other kinds, and of other groups; a long name stays a name."""
    names = {
        ReportedWorkload(group, kind, "team-a", "train", "u").report_name
        for group, kind in (("batch/v1", "Job"), ("batch.volcano.sh/v1alpha1", "Job"), ("apps/v1", "Deployment"))
    }
    assert len(names) == 3
    assert JOB.report_name == ReportedWorkload("batch/v1", "Job", "other", "train", "u2").report_name
    assert len(ReportedWorkload("batch/v1", "Job", "team-a", "x" * 253, "u").report_name) <= 253


def test_it_is_bounded_and_says_what_it_leaves_out() -> None:
    """However many policies and however long their patches are."""
    many = [outcome(policies=(f"ClusterGPUPolicy/p{n:03d}",), patch=json.dumps(["x" * 1990])) for n in range(60)]
    found = made(*many)
    assert len(found["results"]) == MOST_RESULTS
    assert found["metadata"]["annotations"] == {"berth.dev/results-left-out": str(60 - MOST_RESULTS)}
    assert found["summary"] == {"pass": 0, "fail": 0, "warn": 3}
    patches = [one["properties"].get("patch", "") for one in found["results"]]
    assert 0 < sum(map(len, patches)) <= MOST_PATCHES
    assert [one["properties"].get("patchBytes") for one in found["results"] if "patch" not in one["properties"]] == ["1994"] * 12
    assert len(json.dumps(found)) < 20_000


@pytest.mark.parametrize(("api_version", "kind"), [(OPEN_REPORTS, "Report"), (POLICY_REPORTS, "PolicyReport")])
def test_it_is_of_the_kind_that_the_cluster_has(api_version: str, kind: str) -> None:
    """OpenReports, or that which was before it."""
    found = made(outcome(), api_version=api_version)
    assert (found["apiVersion"], found["kind"]) == (api_version, kind)
    assert found.get("source") == ("berth" if kind == "Report" else None)


def test_pending_pods_are_counted() -> None:
    """They wait, and what is found of them may be why."""
    found = report(JOB, group_by_outcome((pod, outcome(), 1, None) for pod in [*pods(2), *pods(3, node="")]), {}, OPEN_REPORTS)
    properties = found["results"][0]["properties"]
    assert (properties["pods"], properties["pending"], "usdPerHour" in properties) == ("5", "3", False)


def test_each_pod_counts_once() -> None:
    """By the gravest of its findings; of one without any it passes, however many policies apply."""
    several = [[outcome(), outcome("would-deny")], [outcome(), outcome("not-as-enforced", mode="Enforce")], [], []]
    assert count_by_result(several) == {"fail": 1, "warn": 1, "pass": 2}
