"""Runs that end with the first pod that is interrupted: which field is told, and when another level runs them again."""

from __future__ import annotations

from typing import Any

import pytest

from policies.request import SingleRun
from policies.workloads.single_runs import find_single_run
from tests.support.cases.golden import catalog_with

Raw = dict[str, Any]
CATALOG = catalog_with()
WORKLOADS = {workload.name: workload for workload in CATALOG.workloads}
TEMPLATE = ("spec", "template")
SPEC: Raw = {"template": {}}
FAIL: Raw = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}
IGNORE: Raw = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
SIGNALS: Raw = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0, 42]}}
KNOWN: Raw = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, None),
        ({"backoffLimit": 3}, None),
        ({"backoffLimit": 0}, SingleRun(("spec", "backoffLimit"), "no retry")),
        ({"backoffLimitPerIndex": 0}, SingleRun(("spec", "backoffLimitPerIndex"), "no retry")),
        ({"runPolicy": {"backoffLimit": 0}}, SingleRun(("spec", "runPolicy", "backoffLimit"), "no retry")),
        ({"backoffLimit": 0, "podFailurePolicy": {"rules": [IGNORE]}}, None),
        ({"podFailurePolicy": {"rules": [FAIL]}}, SingleRun(("spec", "podFailurePolicy"), "failing rule")),
        ({"podFailurePolicy": {"rules": [SIGNALS, IGNORE]}}, SingleRun(("spec", "podFailurePolicy"), "failing rule")),
        ({"podFailurePolicy": {"rules": [KNOWN, IGNORE, SIGNALS]}}, None),
        ({"backoffLimit": 0, "podFailurePolicy": {"rules": [KNOWN]}}, SingleRun(("spec", "backoffLimit"), "no retry")),
        ({"backoffLimit": False, "podFailurePolicy": {"rules": "none"}}, None),
    ],
)
def test_a_job_that_runs_no_pod_again_is_found(fields: Raw, found: SingleRun | None) -> None:
    """The first rule that matches a disrupted pod decides; without one, a limit of 0 does."""
    assert find_single_run({"spec": SPEC | fields}, TEMPLATE, WORKLOADS["Job"]) == found


@pytest.mark.parametrize(
    ("policy", "is_single"),
    [
        (None, True),
        ({"maxRestarts": 0}, True),
        ({"maxRestarts": 2}, False),
        ({"rules": [{"action": "RecreateJob"}]}, False),
        ({"maxRestarts": 0, "rules": [{"action": "FailJobSet"}]}, True),
    ],
)
def test_a_job_set_that_restarts_its_jobs_runs_them_again(policy: Raw | None, *, is_single: bool) -> None:
    """A Job of a JobSet may fail if the JobSet restarts it."""
    jobs = [{"template": {"spec": SPEC | {"backoffLimit": 0}}}]
    job_set = {"spec": {"replicatedJobs": jobs, **({"failurePolicy": policy} if policy is not None else {})}}
    found = find_single_run(job_set, ("spec", "replicatedJobs", 0, "template", "spec", "template"), WORKLOADS["JobSet"])
    assert (found is not None) is is_single


@pytest.mark.parametrize(
    ("own", "spec", "cause"),
    [
        ({}, {}, "no strategy"),
        ({"retryStrategy": {"limit": "3"}}, {}, None),
        ({"retryStrategy": {"limit": 0}}, {}, "no retry"),
        ({}, {"templateDefaults": {"retryStrategy": {}}}, None),
    ],
)
def test_argo_retries_only_by_a_strategy(own: Raw, spec: Raw, cause: str | None) -> None:
    """A template, the defaults of templates, or the workflow has the strategy."""
    found = find_single_run({"spec": {"templates": [own], **spec}}, ("spec", "templates", 0), WORKLOADS["Workflow"])
    assert (found.cause if found else None) == cause


def test_a_service_is_no_run() -> None:
    """What a Deployment's fields say of a Job's limits means nothing."""
    assert find_single_run({"spec": SPEC | {"backoffLimit": 0}}, TEMPLATE, WORKLOADS["Deployment"]) is None
