"""The custom kinds of the catalog, and what is held of their objects."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from analysis.audit.stored_pod import Controller, widest
from cluster.watch.kinds import Watched
from cluster.watch.workload_kinds import LARGEST, OWN_GROUPS, as_served, base_kinds, custom_workloads, resources, resting
from kube.templates import group_of
from policies.workloads.pods import ALONE
from tests.support.generators.random_worlds import catalog

WRONG: list[str] = []
KINDS = {
    one.title: one for one in custom_workloads(catalog(), widest(catalog()), ALONE, lambda kind, error: WRONG.append(f"{kind}: {error}"))
}
BASES = {one.title: one for one in base_kinds(catalog())}
RAY = KINDS["RayCluster.ray.io"]


def ray_cluster(spec: Any, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "1", **metadata}, "spec": spec}


def group(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    return {"template": {"spec": {"containers": containers, **spec}}}


def test_every_custom_workload_of_the_catalog_is_followed() -> None:
    """Or is what others rest on, or is in no namespace; none of Kubernetes' own is."""
    known = {
        f"{one.kind}.{group_of(version)}"
        for one in catalog().workloads
        for version in one.api_version
        if not one.cluster and group_of(version) not in OWN_GROUPS
    }
    assert known <= KINDS.keys() | BASES.keys()
    assert not KINDS.keys() & BASES.keys()
    assert {"Job.batch.volcano.sh", "StatefulSet.apps.kruise.io", "Revision.serving.knative.dev"} <= KINDS.keys()
    assert BASES["ClusterTrainingRuntime.trainer.kubeflow.org"].namespaced is False
    assert ("trainer.kubeflow.org", "TrainJob") in resting(catalog())


def test_rights_are_for_these_kinds() -> None:
    """All of them, and no other."""
    asked = {(group, plural) for group, plurals in resources(catalog()).items() for plural in plurals}
    assert asked == {(one.group, one.plural) for one in (*KINDS.values(), *BASES.values())}


def test_versions_that_the_catalog_names_come_first() -> None:
    """For their templates are known; another one is better than none."""
    assert as_served(RAY, ("v2", "v1alpha1", "v1")).versions == ("v1", "v1alpha1", "v2")
    assert as_served(RAY, ("v2",)).versions == ("v2",)


def test_an_object_has_its_owner_and_its_pods() -> None:
    """And nothing of what no policy reads."""
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "j", "uid": "j", "controller": True}
    found = RAY.trim(ray_cluster({"workerGroupSpecs": [group()]}), "ray.io/v1", "RayCluster")
    assert (found["uid"], found["owner"], found["above"]) == ("u", None, Controller("ray.io/v1", "RayCluster", "n", "u"))
    assert [pod.name for pod in found["templates"]] == ["RayCluster.ray.io/n/0"]
    owned = RAY.trim(ray_cluster({"workerGroupSpecs": [group()]}, ownerReferences=[owner]), "ray.io/v1", "RayCluster")
    assert (owned["owner"], owned["templates"]) == (Controller("ray.io/v1", "RayJob", "j", "j"), ())
    assert (
        RAY.trim(ray_cluster({"headGroupSpec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}), "ray.io/v1", "RayCluster")[
            "templates"
        ]
        == ()
    )  # it asks for no device


def deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize(
    "spec",
    [
        {"workerGroupSpecs": [group()] * 10_000},
        {"workerGroupSpecs": [group(tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(25_000)])]},
        {"workerGroupSpecs": [group(deep=deep(2000))]},
        {"workerGroupSpecs": deep(900)},
        {"workerGroupSpecs": [group(containers="x"), {"template": 7}, None]},
        {"workerGroupSpecs": {"a": group()}},
        [],
        None,
    ],
)
def test_hostile_templates_are_passed_over(spec: Any) -> None:
    """A mebibyte of them, deep ones, and those of other types."""
    assert RAY.trim(ray_cluster(spec), "ray.io/v1", "RayCluster")["templates"] == ()
    assert BASES["TrainingRuntime.trainer.kubeflow.org"].trim(ray_cluster(spec), "trainer.kubeflow.org/v1alpha1", "TrainingRuntime")
    assert WRONG == []


def test_what_is_held_of_an_object_is_bounded() -> None:
    """Whatever fits into what is read."""
    tolerations = [{"key": f"k{n}", "operator": "Exists"} for n in range(1000)]
    value = ray_cluster({"workerGroupSpecs": [group(tolerations=tolerations)] * 6})
    tracemalloc.start()
    try:
        found = RAY.trim(value, "ray.io/v1", "RayCluster")
        assert tracemalloc.get_traced_memory()[0] < LARGEST
    finally:
        tracemalloc.stop()
    assert 0 < len(found["templates"]) < 6


def test_kinds_that_stand_between_have_an_owner_alone() -> None:
    """They are read by their metadata."""
    revision: Watched = KINDS["Revision.serving.knative.dev"]
    owner = {"apiVersion": "serving.knative.dev/v1", "kind": "Configuration", "name": "c", "uid": "c", "controller": True}
    found = revision.trim(ray_cluster(None, ownerReferences=[owner]), "serving.knative.dev/v1", "Revision")
    assert revision.metadata_only
    assert (found["owner"].name, found["templates"]) == ("c", ())
