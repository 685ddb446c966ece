"""One workload as the pods that it will make."""

from __future__ import annotations

from typing import Any

import pytest

from kube.tree import dotted
from policies.document import Document, InputError
from policies.workloads.described import Described
from policies.workloads.parts import PodPart, at, own, template
from policies.workloads.pods import Owner, Templated, laid, pods_of
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


GPUS = {"limits": {"nvidia.com/gpu": 4}}


def base(**spec: Any) -> Described:
    containers = [{"name": "node", "image": "i", "resources": {"limits": {"cpu": 8, "nvidia.com/gpu": 1}}}]
    return Described(at=("spec", "t"), template={"metadata": {"labels": {"a": "1"}}, "spec": {"containers": containers, **spec}}, parts=())


def over(spec: dict[str, Any], *parts: PodPart) -> Described:
    return Described(at=("spec",), template={"metadata": {"labels": {"b": "2"}}, "spec": spec}, parts=parts)


def test_replaced_resources_are_all_that_the_container_has() -> None:
    """As Kubeflow's trainer writes them; the rest of the pod is the runtime's."""
    part = PodPart(("spec", "containers", 0, "resources"), ("spec", "trainer", "resources"), ("spec", "trainer", "resources"))
    found = laid(base(nodeSelector={"n": "1"}), over({"containers": [{"name": "node", "resources": GPUS}]}, part), replaced=True)
    assert found.template["spec"]["containers"] == [{"name": "node", "image": "i", "resources": GPUS}]
    assert found.template["spec"]["nodeSelector"] == {"n": "1"}
    assert found.template["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert at(("spec", "containers", 0, "resources", "limits"), found.parts) == ("spec", "trainer", "resources", "limits")
    assert own(("spec", "containers", 0, "livenessProbe"), found.parts) is None


def test_a_pod_without_that_container_has_no_use_for_them() -> None:
    """A runtime's initializers are other pods."""
    found = laid(base(), over({"containers": [{"name": "other", "resources": GPUS}]}), replaced=True)
    assert [one["name"] for one in found.template["spec"]["containers"]] == ["node"]


def test_merged_resources_are_those_of_both() -> None:
    """As KServe lays a model over its runtime; of that container only resources are edited where the model is."""
    part = PodPart(("spec", "containers", 0), ("spec", "model"), ("spec", "model"))
    found = laid(base(), over({"containers": [{"name": "node", "resources": GPUS}]}, part), replaced=False)
    assert found.template["spec"]["containers"][0]["resources"] == {"limits": {"cpu": 8, "nvidia.com/gpu": 4}}
    assert own(("spec", "containers", 0, "resources", "requests"), found.parts) == ("spec", "model", "resources", "requests")
    assert own(("spec", "containers", 0, "image"), found.parts) is None


def test_a_base_that_is_wrong_is_judged_by_itself() -> None:
    """What is wrong with it is told where it stands."""
    wrong = Described(at=("spec",), template={"spec": {"containers": "x"}}, parts=template(("spec",)))
    assert laid(wrong, over({"containers": []}), replaced=False).template == wrong.template


@pytest.mark.parametrize(("own_claims", "claim"), [({}, "of-all"), ({"resourceClaims": [{"name": "gpus"}]}, "gpus")])
def test_a_template_of_argo_has_its_own_claims_or_those_of_the_workflow(own_claims: dict[str, Any], claim: str) -> None:
    """The template's list replaces that of the workflow, as Argo's controller reads them."""
    argo = {"name": "train", "container": {"image": "x"}, **own_claims}
    (workflow,) = pods("argoproj.io/v1alpha1", "Workflow", {"spec": {"resourceClaims": [{"name": "of-all"}], "templates": [argo]}})
    assert isinstance(workflow, Templated)
    assert [one["name"] for one in workflow.pod["spec"]["resourceClaims"]] == [claim]
