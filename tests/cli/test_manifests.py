"""Objects of documents as the pods to judge in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.manifests import Manifest, read
from policies.catalog import Catalog
from policies.document import Document, InputError, path_text
from webhook.files import read_catalog

REVIEWS = Path(__file__).parent.parent / "reviews"
WANTS_TEMPLATE = "wants a pod template, a map with metadata and spec; found"
SPEC: dict[str, Any] = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
TEMPLATE = {"spec": SPEC}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return read_catalog()


def _object(kind: str = "Pod", api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


def _read(catalog: Catalog, value: dict[str, Any]) -> Manifest:
    return read(Document(file="f.yaml", value=value), catalog, "default")


def _error(catalog: Catalog, value: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        _read(catalog, value)
    return str(caught.value)


def _recorded(name: str) -> dict[str, Any]:
    review: dict[str, Any] = json.loads((REVIEWS / f"{name}.json").read_text())
    return review


@pytest.mark.parametrize(
    ("kind", "api_version", "spec", "paths"),
    [
        ("Pod", "v1", SPEC, [""]),
        ("Job", "batch/v1", {"template": TEMPLATE}, ["spec.template"]),
        ("Job", "batch/v1beta9", {"template": TEMPLATE}, ["spec.template"]),
        ("CronJob", "batch/v1", {"jobTemplate": {"spec": {"template": TEMPLATE}}}, ["spec.jobTemplate.spec.template"]),
        ("Deployment", "apps/v1", {"template": TEMPLATE}, ["spec.template"]),
        (
            "PyTorchJob",
            "kubeflow.org/v1",
            {"pytorchReplicaSpecs": {"Master": {"template": TEMPLATE}, "Worker": {"template": TEMPLATE}}},
            ["spec.pytorchReplicaSpecs.Master.template", "spec.pytorchReplicaSpecs.Worker.template"],
        ),
        (
            "RayCluster",
            "ray.io/v1",
            {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [{"template": TEMPLATE}, {"replicas": 0}]},
            ["spec.headGroupSpec.template", "spec.workerGroupSpecs[0].template"],
        ),
        ("RayCluster", "ray.io/v1", {"workerGroupSpecs": None}, []),
        ("ConfigMap", "v1", {}, []),
        ("Job", "example.com/v1", {"template": TEMPLATE}, []),
    ],
)
def test_pods_come_from_where_the_catalog_says(catalog: Catalog, kind: str, api_version: str, spec: Any, paths: list[str]) -> None:
    """Each template that is there is one pod to judge, whatever the version of the API group."""
    manifest = _read(catalog, _object(kind, api_version, spec=spec))
    assert [path_text(subject.template) for subject in manifest.subjects] == paths


def test_an_unknown_kind_with_a_template_is_said(catalog: Catalog) -> None:
    """What looks as if it made pods, and is not in the catalog, is not passed over in silence."""
    assert "--catalog" in _read(catalog, _object("Job", "example.com/v1", spec={"template": TEMPLATE})).note
    assert _read(catalog, _object("ConfigMap", data={"a": "b"})).note == ""


def test_namespace_is_the_objects_own_or_the_given(catalog: Catalog) -> None:
    """--namespace is for objects that name none."""
    own = {**_object(spec=SPEC), "metadata": {"name": "x", "namespace": "mine"}}
    assert _read(catalog, own).namespace == "mine"
    assert _read(catalog, own).subjects[0].review.pod["metadata"]["namespace"] == "mine"
    assert _read(catalog, _object(spec=SPEC)).namespace == "default"


def test_excluded_namespaces_are_not_judged(catalog: Catalog) -> None:
    """The webhook never sees their pods, so `try` does not judge them."""
    manifest = _read(catalog, {**_object(spec=SPEC), "metadata": {"name": "x", "namespace": "kube-system"}})
    assert manifest.subjects == ()
    assert manifest.note == "namespace kube-system is excluded"


def test_a_queued_job_makes_pods_that_kueue_admitted(catalog: Catalog) -> None:
    """The label that Kueue writes on the pods of a workload with a queue is on the pod to judge."""
    job = _object("Job", "batch/v1", spec={"template": TEMPLATE})
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    assert _read(catalog, job).subjects[0].review.pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "main"


def test_a_reviewed_pod_stays_as_it_came(catalog: Catalog) -> None:
    """The review's own uid, user, namespace and pod are judged, nothing is defaulted."""
    recorded = _recorded("pods-create-mismatch")
    manifest = _read(catalog, recorded)
    (subject,) = manifest.subjects
    assert manifest.reviewed
    assert subject.review.pod is recorded["request"]["object"]
    assert (subject.review.uid, subject.review.user, subject.review.namespace) == (recorded["request"]["uid"], "admin", "ml-team")


def test_an_update_keeps_the_old_pod(catalog: Catalog) -> None:
    """What an update is compared with comes along."""
    (subject,) = _read(catalog, _recorded("pods-update-amd-bench")).subjects
    assert subject.review.operation == "UPDATE"
    assert subject.review.old_pod is not None


def test_a_reviewed_workload_is_judged_by_its_template(catalog: Catalog) -> None:
    """A Deployment under review is read as its manifest is; to the server, which takes pods only, it is bad input."""
    recorded = _recorded("deployments-create-vllm-server")
    manifest = _read(catalog, recorded)
    assert manifest.kind == "Deployment"
    assert [subject.template for subject in manifest.subjects] == [("spec", "template")]
    with pytest.raises(InputError, match="send only pods here"):
        read(Document(file="f", value=recorded), catalog, "default", as_served=True)


def _pod(**spec: Any) -> dict[str, Any]:
    return _object(spec={**SPEC, **spec})


def _container(**fields: Any) -> dict[str, Any]:
    return _object(spec={"containers": [{"name": "c", **fields}]})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"kind": "Pod"}, "f.yaml, apiVersion: wants text such as v1 or batch/v1; found nothing (null)"),
        ({"apiVersion": "v1", "kind": ["Pod"]}, "f.yaml, kind: wants text such as Pod or Job; found a list"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": "x"}, 'f.yaml, metadata: wants a map; found the text "x"'),
        (_object(spec=None), "f.yaml, spec: wants a map; found nothing (null)"),
        (_object(), "f.yaml, spec: wants a map; found nothing (null)"),
        (_object(spec={"containers": None}), "f.yaml, spec.containers: wants a list of containers; found nothing (null)"),
        (_object(spec={"containers": []}), "f.yaml, spec.containers: wants a list of containers; found an empty list"),
        (_object(spec={"containers": "c"}), 'f.yaml, spec.containers: wants a list of containers; found the text "c"'),
        (_object(spec={"containers": [None]}), "f.yaml, spec.containers[0]: wants a map; found nothing (null)"),
        (_pod(tolerations="gpu"), 'f.yaml, spec.tolerations: wants a list; found the text "gpu"'),
        (_pod(affinity=[]), "f.yaml, spec.affinity: wants a map; found a list"),
        (_container(resources="1"), 'f.yaml, spec.containers[0].resources: wants a map; found the text "1"'),
        (
            _container(resources={"limits": {"nvidia.com/gpu": "$GPUS"}}),
            'f.yaml, spec.containers[0].resources.limits["nvidia.com/gpu"]: wants a quantity such as 1; found the text "$GPUS"',
        ),
        (
            _container(resources={"requests": {"amd.com/gpu": True}}),
            'f.yaml, spec.containers[0].resources.requests["amd.com/gpu"]: wants a quantity such as 1; found the boolean true',
        ),
        (_object("Job", "batch/v1", spec=None), "f.yaml, spec: wants a map; found nothing (null)"),
        (_object("Job", "batch/v1", spec={}), f"f.yaml, spec.template: {WANTS_TEMPLATE} nothing (null)"),
        (_object("Job", "batch/v1", spec={"template": "x"}), f'f.yaml, spec.template: {WANTS_TEMPLATE} the text "x"'),
        (_object("Job", "batch/v1", spec={"template": {"spec": None}}), "f.yaml, spec.template.spec: wants a map; found nothing (null)"),
        (_object("Job", "batch/v1", spec={"template": {"foo": 1}}), "f.yaml, spec.template.spec: wants a map; found nothing (null)"),
        (_object("CronJob", "batch/v1", spec={"jobTemplate": []}), "f.yaml, spec.jobTemplate: wants a map; found a list"),
        (
            _object("PyTorchJob", "kubeflow.org/v1", spec={"pytorchReplicaSpecs": []}),
            "f.yaml, spec.pytorchReplicaSpecs: wants a map; found a list",
        ),
        (_object("RayCluster", "ray.io/v1", spec={"workerGroupSpecs": {}}), "f.yaml, spec.workerGroupSpecs: wants a list; found a map"),
        (_object("AdmissionReview", "admission.k8s.io/v1"), "f.yaml, request: wants a map; found nothing (null)"),
        (
            _object("AdmissionReview", "admission.k8s.io/v1", request={"operation": "DELETE", "object": None}),
            "f.yaml, request.object: wants an object, a map with apiVersion and kind; found nothing (null)",
        ),
        (
            _object("AdmissionReview", "admission.k8s.io/v1", request={"object": _pod(), "resource": {"group": "", "resource": "pods"}}),
            "f.yaml: request.operation is missing; Berth judges CREATE and UPDATE",
        ),
    ],
)
def test_bad_input_says_where_and_what_was_wanted(catalog: Catalog, value: dict[str, Any], said: str) -> None:
    """File, path, what was wanted, what was found."""
    assert _error(catalog, value) == f"berth: {said}"


@pytest.mark.parametrize(
    "value",
    [
        _container(resources=None),
        _container(resources={"limits": None}),
        _container(resources={"limits": {"nvidia.com/gpu": None}}),
        _container(resources={"limits": {"cpu": "$CPUS", "nvidia.com/gpu": "1e0"}}),
        _container(image=7),
        _pod(tolerations=None, nodeSelector=None, affinity=None, initContainers=None),
        {**_pod(), "metadata": None},
    ],
    ids=str,
)
def test_what_the_api_server_takes_or_refuses_itself_is_judged(catalog: Catalog, value: dict[str, Any]) -> None:
    """Null is absent, and what is no business of accelerators is left to the API server."""
    assert len(_read(catalog, value).subjects) == 1
