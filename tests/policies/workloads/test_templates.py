"""Where the templates of a workload are."""

from __future__ import annotations

from typing import Any

import pytest

from kube.tree import dotted
from policies.document import Document, InputError
from policies.workloads.templates import templates, workload_of
from tests.support.cases import golden

CATALOG = golden.catalog_with()


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
