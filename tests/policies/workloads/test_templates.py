"""Where the templates of a workload are, and what its controller makes of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube.templates import CONTROLLERS, pod_of
from kube.tree import dotted
from policies.document import Document, InputError
from policies.workloads.templates import find_pod_maker, steps, templates, workload_of
from tests.support.cases import golden

CATALOG = golden.catalog_with()
REVIEWS = Path(__file__).parents[2] / "reviews"
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}


def found(api_version: str, kind: str, spec: Any, *, required: bool = False) -> list[str]:
    workload = workload_of(CATALOG, api_version, kind)
    assert workload is not None
    document = Document(file="f", value={"spec": spec})
    return [dotted(path) for path, _ in templates(document, workload, required=required)]


@pytest.mark.parametrize(
    ("api_version", "kind", "name"),
    [
        ("apps/v1", "Deployment", "Deployment"),
        ("apps/v2", "Deployment", "Deployment"),
        ("batch.volcano.sh/v1alpha1", "Job", "VolcanoJob"),
        ("batch/v1", "Job", "Job"),
        ("example.com/v1", "Job", None),
        ("v1", "ConfigMap", None),
    ],
)
def test_a_kind_is_known_by_its_group(api_version: str, kind: str, name: str | None) -> None:
    """Whatever the version; two groups may have a kind of one name."""
    workload = workload_of(CATALOG, api_version, kind)
    assert (workload.name if workload else None) == name


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        (
            {"headGroupSpec": {"template": {}}, "workerGroupSpecs": [{"template": {}}, None, {"replicas": 0}]},
            ["headGroupSpec", "workerGroupSpecs[0]"],
        ),
        ({"headGroupSpec": None, "workerGroupSpecs": None}, []),
        ({"headGroupSpec": {"template": None}}, []),
        ({}, []),
    ],
    ids=str,
)
def test_null_reads_as_absent(spec: Any, paths: list[str]) -> None:
    """On the way to a template, and in its place."""
    assert found("ray.io/v1", "RayCluster", spec) == [f"spec.{path}.template" for path in paths]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (None, "spec: must be a map"),
        ([], "spec: must be a map"),
        ({"workerGroupSpecs": {"a": 1}}, r"spec\.workerGroupSpecs: must be a list"),
    ],
    ids=str,
)
def test_a_way_that_is_none_is_told(spec: Any, message: str) -> None:
    """With the path up to where it is wrong."""
    with pytest.raises(InputError, match=message):
        found("ray.io/v1", "RayCluster", spec)


def test_a_kind_of_kubernetes_must_have_its_template() -> None:
    """An operator may leave its templates out."""
    with pytest.raises(InputError, match=r"spec\.template: must be a pod template"):
        found("batch/v1", "Job", {}, required=True)


def _pod(api_version: str, kind: str) -> dict[str, Any]:
    workload = workload_of(CATALOG, api_version, kind)
    assert workload is not None
    return pod_of(TEMPLATE, name="w", namespace="ns", maker=find_pod_maker(api_version, kind, workload))


@pytest.mark.parametrize(
    ("api_version", "kind", "owner", "label"),
    [
        ("batch/v1", "Job", ("batch/v1", "Job", "w"), "batch.kubernetes.io/job-name=w"),
        ("batch/v1", "CronJob", ("batch/v1", "Job", "w-29000000"), "job-name=w-29000000"),
        ("apps/v1", "Deployment", ("apps/v1", "ReplicaSet", "w-5d4f8c7b9d"), "pod-template-hash=5d4f8c7b9d"),
        ("apps/v1", "ReplicaSet", ("apps/v1", "ReplicaSet", "w"), "a=b"),
        ("apps/v1", "StatefulSet", ("apps/v1", "StatefulSet", "w"), "statefulset.kubernetes.io/pod-name=w-0"),
        ("apps/v1", "DaemonSet", ("apps/v1", "DaemonSet", "w"), "pod-template-generation=1"),
        (
            "kubeflow.org/v1",
            "PyTorchJob",
            ("kubeflow.org/v1", "PyTorchJob", "w"),
            "training.kubeflow.org/operator-name=pytorchjob-controller",
        ),
        ("kubeflow.org/v1", "Notebook", ("apps/v1", "StatefulSet", "w"), "notebook-name=w"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", ("batch/v1", "Job", "w"), "jobset.sigs.k8s.io/jobset-name=w"),
        ("ray.io/v1", "RayJob", ("ray.io/v1", "RayCluster", "w"), "ray.io/originated-from-crd=RayJob"),
        ("batch.volcano.sh/v1alpha1", "Job", ("batch.volcano.sh/v1alpha1", "Job", "w"), "volcano.sh/job-name=w"),
    ],
)
def test_owner_and_labels_are_the_controllers(api_version: str, kind: str, owner: tuple[Any, ...], label: str) -> None:
    """The pod has one controlling owner, the template's labels and those that the controller adds."""
    pod = _pod(api_version, kind)
    (reference,) = pod["metadata"]["ownerReferences"]
    assert (reference["apiVersion"], reference["kind"], reference["name"]) == owner
    assert reference["controller"] is True
    key, _, value = label.partition("=")
    assert pod["metadata"]["labels"][key] == value
    assert pod["metadata"]["labels"]["a"] == "b"


def test_volcano_schedules_its_own() -> None:
    """A template without schedulerName gets the operator's."""
    assert _pod("batch.volcano.sh/v1alpha1", "Job")["spec"]["schedulerName"] == "volcano"


@pytest.mark.parametrize("recorded", ["pods-create-train-llama", "pods-create-vllm-server"])
def test_made_as_recorded(recorded: str) -> None:
    """Owner and label names are those of pods that real controllers made."""
    real = json.loads((REVIEWS / f"{recorded}.json").read_text())["request"]["object"]["metadata"]
    kind = {"Job": "Job", "ReplicaSet": "Deployment"}[real["ownerReferences"][0]["kind"]]
    ours = _pod("batch/v1" if kind == "Job" else "apps/v1", kind)["metadata"]
    assert set(ours["labels"]) - {"a"} <= set(real["labels"])
    assert set(ours["ownerReferences"][0]) == set(real["ownerReferences"][0])
    assert ours["ownerReferences"][0]["kind"] == real["ownerReferences"][0]["kind"]


def test_the_catalog_has_the_templates_of_kubernetes_own_kinds() -> None:
    """At the paths at which their controllers read them."""
    for (group, kind), maker in CONTROLLERS.items():
        workload = workload_of(CATALOG, f"{group}/v1" if group else "v1", kind)
        assert workload is None or [steps(text) for text in workload.templates] == [maker.template], kind
