"""The pod that a controller makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from catalog import Catalog
from documents.files import read_catalog
from kube.templates import bare_pod, made_by, pod_of, with_defaults
from policies.workloads.templates import workload_of

REVIEWS = Path(__file__).parents[2] / "reviews"
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return read_catalog()


def _pod(catalog: Catalog, api_version: str, kind: str) -> dict[str, Any]:
    workload = workload_of(catalog, api_version, kind)
    assert workload is not None
    return pod_of(TEMPLATE, name="w", namespace="ns", made=made_by(api_version, kind, workload))


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
def test_owner_and_labels_are_the_controllers(catalog: Catalog, api_version: str, kind: str, owner: tuple[Any, ...], label: str) -> None:
    """The pod has one controlling owner, the template's labels and those that the controller adds."""
    pod = _pod(catalog, api_version, kind)
    (reference,) = pod["metadata"]["ownerReferences"]
    assert (reference["apiVersion"], reference["kind"], reference["name"]) == owner
    assert reference["controller"] is True
    key, _, value = label.partition("=")
    assert pod["metadata"]["labels"][key] == value
    assert pod["metadata"]["labels"]["a"] == "b"


def test_volcano_schedules_its_own(catalog: Catalog) -> None:
    """A template without schedulerName gets the operator's."""
    assert _pod(catalog, "batch.volcano.sh/v1alpha1", "Job")["spec"]["schedulerName"] == "volcano"


@pytest.mark.parametrize("recorded", ["pods-create-train-llama", "pods-create-vllm-server"])
def test_made_as_recorded(catalog: Catalog, recorded: str) -> None:
    """Owner and label names are those of pods that real controllers made."""
    real = json.loads((REVIEWS / f"{recorded}.json").read_text())["request"]["object"]["metadata"]
    kind = {"Job": "Job", "ReplicaSet": "Deployment"}[real["ownerReferences"][0]["kind"]]
    ours = _pod(catalog, "batch/v1" if kind == "Job" else "apps/v1", kind)["metadata"]
    assert set(ours["labels"]) - {"a"} <= set(real["labels"])
    assert set(ours["ownerReferences"][0]) == set(real["ownerReferences"][0])
    assert ours["ownerReferences"][0]["kind"] == real["ownerReferences"][0]["kind"]


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
