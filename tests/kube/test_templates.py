"""Defaults of a pod, and one pod spec over another; that they are merged as Kubernetes merges them is shown in tests/kube/upstream."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kube.templates import bare_pod, merge_strategic, pods_at_once, rolling_update, with_defaults


def test_defaults_are_those_that_rules_read() -> None:
    """Requests come from limits where the author wrote none, the grace period is 30 seconds."""
    resources = {"limits": {"nvidia.com/gpu": 2, "cpu": 1}, "requests": {"cpu": "500m"}}
    pod = with_defaults({"spec": {"containers": [{"resources": resources}], "initContainers": [{"resources": {"limits": {"cpu": 1}}}]}})
    assert pod["spec"]["terminationGracePeriodSeconds"] == 30
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "nvidia.com/gpu": 2}
    assert pod["spec"]["initContainers"][0]["resources"]["requests"] == {"cpu": 1}
    assert resources["requests"] == {"cpu": "500m"}


def test_what_the_author_wrote_stays() -> None:
    """A written grace period is kept, of 0 too."""
    assert with_defaults({"spec": {"containers": [], "terminationGracePeriodSeconds": 0}})["spec"]["terminationGracePeriodSeconds"] == 0


def test_null_reads_as_absent() -> None:
    """As the API server decodes it."""
    spec = {"affinity": None, "containers": [{"name": "c", "resources": {"limits": None}}]}
    pod = bare_pod({"metadata": {"labels": None}, "spec": spec}, "ns")
    assert pod["metadata"] == {"namespace": "ns"}
    assert "affinity" not in pod["spec"]
    assert pod["spec"]["containers"] == [{"name": "c", "resources": {}}]


def test_nulls_are_found_at_any_depth() -> None:
    """Deeper than Python calls may nest, as an operator's schema may let pass."""
    deep: Any = {"null": None, "list": [None]}
    for _ in range(2000):
        deep = {"x": [deep]}
    found = with_defaults({"spec": {"containers": [], "deep": deep}})["spec"]["deep"]
    while "x" in found:
        found = found["x"][0]
    assert found == {"list": [None]}


def test_a_pod_without_nulls_is_not_copied() -> None:
    """What rules never change is shared with the manifest."""
    spec = {"containers": [{"name": "c", "args": ["x", {"a": []}]}]}
    assert with_defaults({"spec": spec})["spec"]["containers"][0] is spec["containers"][0]


UNDER: dict[str, Any] = {
    "nodeSelector": {"a": "1", "b": "2"},
    "containers": [{"name": "main", "image": "i", "resources": {"limits": {"cpu": 1, "nvidia.com/gpu": 1}}}, {"name": "side"}],
}


def test_what_is_laid_over_changes_nothing_below() -> None:
    """Items that no patch names are shared."""
    before = copy.deepcopy(UNDER)
    over = {"nodeSelector": {"a": None}, "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}
    assert merge_strategic(UNDER, over)["containers"][1] is UNDER["containers"][1]
    assert before == UNDER


@pytest.mark.parametrize("containers", ["x", [1], [{"image": "i"}], {"name": 1}])
def test_a_list_without_names_is_no_patch(containers: Any) -> None:
    """Kubernetes denies it too."""
    with pytest.raises(ValueError, match="containers must be a list of maps, each with its name"):
        merge_strategic(UNDER, {"containers": containers})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, (1, 0)),
        ({"replicas": 3}, (1, 0)),
        ({"replicas": 4}, (1, 1)),
        ({"replicas": 8, "strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}}}, (4, 0)),
        ({"replicas": 1, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "25%"}}}, (0, 1)),
        ({"replicas": 0}, (0, 1)),
        ({"strategy": {"type": "Recreate"}}, None),
        ({"strategy": {"rollingUpdate": {"maxSurge": "many"}}}, None),
        ({"strategy": {"rollingUpdate": {"maxSurge": "1"}}}, None),
        ({"replicas": "x"}, None),
    ],
)
def test_how_a_deployment_replaces_its_pods(spec: dict[str, Any], expected: tuple[int, int] | None) -> None:
    """A surge is rounded up, what may be missing down; where both come to nothing, one pod may be missing."""
    assert rolling_update({"spec": spec}) == expected


COUNTED: list[tuple[Any, tuple[str | int, ...], int]] = [
    ({"spec": {"replicas": 3, "template": {}}}, ("spec", "template"), 3),
    ({"spec": {"parallelism": 8, "completions": 2, "template": {}}}, ("spec", "template"), 2),
    ({"spec": {"parallelism": 8, "template": {}}}, ("spec", "template"), 8),
    ({"spec": {"template": {}}}, ("spec", "template"), 1),
    ({"spec": {"replicas": 0, "template": {}}}, ("spec", "template"), 1),
    ({"spec": {"tasks": [{"replicas": 1, "template": {}}, {"replicas": 4, "template": {}}]}}, ("spec", "tasks", 1, "template"), 4),
    ({"spec": {"specs": {"Worker": {"replicas": 2, "template": {}}}}}, ("spec", "specs", "Worker", "template"), 2),
    ({"spec": {"groups": [{"replicas": 2, "numOfHosts": 4, "template": {}}]}}, ("spec", "groups", 0, "template"), 8),
    ({"spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": {}}}},
     ("spec", "leaderWorkerTemplate", "workerTemplate"), 8),
    ({"spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "leaderTemplate": {}, "workerTemplate": {}}}},
     ("spec", "leaderWorkerTemplate", "workerTemplate"), 6),
    ({"spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "leaderTemplate": {}, "workerTemplate": {}}}},
     ("spec", "leaderWorkerTemplate", "leaderTemplate"), 2),
    ({"spec": {"replicatedJobs": [{"replicas": 2, "template": {"spec": {"parallelism": 4, "template": {}}}}]}},
     ("spec", "replicatedJobs", 0, "template", "spec", "template"), 8),
    ({"spec": {"replicas": "${N}", "template": {}}}, ("spec", "template"), 1),
    ({"spec": []}, ("spec", "template"), 1),
    ({"metadata": {}}, (), 1),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "template", "count"), COUNTED)
def test_pods_are_counted_by_what_stands_above_their_template(workload: Any, template: Any, count: int) -> None:
    """Of a workload that does not say it, at least one."""
    assert pods_at_once(workload, template) == count
