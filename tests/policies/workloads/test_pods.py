"""One workload as the pods that it will make."""

from __future__ import annotations

from typing import Any

import pytest

from kube.tree import dotted
from policies.document import Document, InputError
from policies.workloads.pods import Owner, Templated, pods_of
from policies.workloads.templates import workload_of
from tests.support.cases import golden

CATALOG = golden.catalog_with()
GOOD: dict[str, Any] = {"spec": {"containers": [{"name": "c"}]}}


def pods(api_version: str, kind: str, value: dict[str, Any]) -> list[Templated | InputError]:
    workload = workload_of(CATALOG, api_version, kind)
    assert workload is not None
    owner = Owner(api_version=api_version, kind=kind, name="w", namespace="ml", workload=workload)
    return list(pods_of(Document(file="f", value=value), owner, CATALOG))


def test_each_template_is_one_pod() -> None:
    """With its place in the workload, its namespace and who creates it."""
    (made,) = pods("batch/v1", "CronJob", {"spec": {"jobTemplate": {"spec": {"template": GOOD}}}})
    assert isinstance(made, Templated)
    assert dotted(made.template) == "spec.jobTemplate.spec.template"
    assert made.pod["metadata"]["namespace"] == "ml"
    assert made.user == "system:serviceaccount:kube-system:job-controller"


def test_a_template_that_cannot_be_read_does_not_hide_the_others() -> None:
    """It is told in its place."""
    wrong = {"spec": {"containers": "c"}}
    found = pods("ray.io/v1", "RayCluster", {"spec": {"workerGroupSpecs": [{"template": one} for one in (GOOD, wrong, GOOD)]}})
    assert [isinstance(one, InputError) for one in found] == [False, True, False]
    assert "workerGroupSpecs[1].template.spec.containers: must be a list" in str(found[1])


@pytest.mark.parametrize("spec", [None, "x", {"workerGroupSpecs": {"a": {}}}], ids=str)
def test_a_way_that_is_none_is_the_only_thing_told(spec: Any) -> None:
    """Nothing can be found behind it."""
    (error,) = pods("ray.io/v1", "RayCluster", {"spec": spec})
    assert isinstance(error, InputError)


@pytest.mark.parametrize(
    ("kind", "labels", "template"),
    [
        ("Job", {"kueue.x-k8s.io/queue-name": "q"}, lambda t: {"template": t}),
        ("CronJob", {}, lambda t: {"jobTemplate": {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}, "spec": {"template": t}}}),
    ],
)
def test_a_queued_job_makes_pods_that_kueue_admitted(kind: str, labels: Any, template: Any) -> None:
    """The label that Kueue writes on the pods of a workload with a queue is there."""
    (made,) = pods("batch/v1", kind, {"metadata": {"labels": labels}, "spec": template(GOOD)})
    assert isinstance(made, Templated)
    assert made.pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "main"


def test_a_kind_without_templates_makes_none() -> None:
    """Its pods are made from something else (a TrainJob's from a TrainingRuntime)."""
    assert pods("trainer.kubeflow.org/v1alpha1", "TrainJob", {"spec": {"anything": 1}}) == []


ASKS: dict[str, Any] = {"limits": {"nvidia.com/gpu": 2}}
POD: dict[str, Any] = {"containers": [{"name": "main", "resources": ASKS}]}


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "places"),
    [
        ("keda.sh/v1alpha1", "ScaledJob", {"jobTargetRef": {"template": {"spec": POD}}}, ["spec.jobTargetRef.template"]),
        (
            "sparkoperator.k8s.io/v1alpha1",
            "SparkConnect",
            {"server": {"template": {"spec": POD}}, "executor": {"template": {"spec": POD}}},
            ["spec.server.template", "spec.executor.template"],
        ),
        ("nvidia.com/v1alpha1", "DynamoCheckpoint", {"job": {"podTemplateSpec": {"spec": POD}}}, ["spec.job.podTemplateSpec"]),
        (
            "grove.io/v1alpha1",
            "PodCliqueSet",
            {"template": {"cliques": [{"name": "a", "spec": {"podSpec": POD}}, {"name": "b", "spec": {"podSpec": POD}}]}},
            ["spec.template.cliques[0]", "spec.template.cliques[1]"],
        ),
        ("grove.io/v1alpha1", "PodClique", {"podSpec": POD}, ["spec"]),
        (
            "slinky.slurm.net/v1beta1",
            "NodeSet",
            {"slurmd": {"resources": ASKS}, "template": {"spec": {}}},
            ["spec"],
        ),
        ("apps.nvidia.com/v1alpha1", "NIMService", {"resources": ASKS}, ["spec"]),
    ],
)
def test_an_operators_object_tells_what_its_pods_ask_for(api_version: str, kind: str, spec: Any, places: list[str]) -> None:
    """Each in the place where its operator reads it."""
    made = pods(api_version, kind, {"spec": spec})
    assert [dotted(one.template) for one in made if isinstance(one, Templated)] == places
    assert [one.pod["spec"]["containers"][0]["resources"]["limits"] for one in made if isinstance(one, Templated)] == [
        ASKS["limits"]
    ] * len(places)


def test_the_affinity_of_a_nim_is_that_of_its_pods() -> None:
    """So what a policy requires can be read there, and written."""
    affinity: dict[str, Any] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
    (made,) = pods("apps.nvidia.com/v1alpha1", "NIMService", {"spec": {"resources": ASKS, "affinity": affinity}})
    assert isinstance(made, Templated)
    assert made.pod["spec"]["affinity"] == affinity
