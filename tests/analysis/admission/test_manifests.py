"""Objects of documents as the pods to judge in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.admission.manifests import Manifest, fact_of, inside, read_manifest
from catalog import Catalog
from documents.files import read_catalog
from kube.tree import dotted
from policies.document import Document, InputError
from policies.facts.cluster_facts import ClusterFacts

REVIEWS = Path(__file__).parent.parent.parent / "reviews"
WANTS_TEMPLATE = "must be a pod template, a map with metadata and spec; found"
SPEC: dict[str, Any] = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
TEMPLATE = {"spec": SPEC}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return read_catalog()


def _object(kind: str = "Pod", api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


def _read(catalog: Catalog, value: dict[str, Any]) -> Manifest:
    return read_manifest(Document(file="f.yaml", value=value), catalog, "default")


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
    assert [dotted(subject.template) for subject in manifest.subjects] == paths


def test_an_unknown_kind_is_told_from_one_that_makes_no_pods(catalog: Catalog) -> None:
    """Kubernetes' own groups are known whole, and some others; of the rest nobody knows."""
    assert not _read(catalog, _object("Job", "example.com/v1", spec={"template": TEMPLATE})).known
    for kind, api_version in (("ConfigMap", "v1"), ("Ingress", "networking.k8s.io/v1"), ("ClusterQueue", "kueue.x-k8s.io/v1beta1")):
        assert _read(catalog, _object(kind, api_version)).known
    assert _read(catalog, _object("pod", "v1", spec=SPEC)).note == "there is no kind pod; write Pod"


@pytest.mark.parametrize(
    ("kind", "api_version", "fact"),
    [
        ("Namespace", "v1", True),
        ("Node", "v1", True),
        ("NodePool", "karpenter.sh/v1", True),
        ("DeviceClass", "resource.k8s.io/v1", True),
        ("ResourceClaim", "resource.k8s.io/v1beta1", True),
        ("ResourceClaim", "resource.k8s.io/v1alpha2", False),
        ("Node", "example.com/v1", False),
    ],
)
def test_what_tells_of_the_cluster_is_a_fact(catalog: Catalog, kind: str, api_version: str, *, fact: bool) -> None:
    """In the versions in which it says what is read; claims are judged too, in the namespace that is theirs."""
    value = _object(kind, api_version, spec={})
    assert _read(catalog, value).fact is fact
    assert (_read(catalog, value).claim is not None) is (fact and kind == "ResourceClaim")
    fact_object = fact_of(Document(file="f", value=value), "team")
    assert (fact_object is not None) is fact
    if fact and kind == "ResourceClaim":
        assert fact_object is not None
        assert fact_object["metadata"]["namespace"] == "team"


def test_a_compute_domain_tells_of_the_template_that_its_driver_creates() -> None:
    """For a channel, which is no GPU, in the namespace that is its own or the run's; a kind of that name in another group tells nothing."""
    value = _object("ComputeDomain", "resource.nvidia.com/v1beta1", spec={"channel": {"resourceClaimTemplate": {"name": "imex"}}})
    template = fact_of(Document(file="f", value=value), "team")
    facts = ClusterFacts.from_objects([template])
    ((choice,),) = facts.claims["ResourceClaimTemplate", "team", "imex"]
    assert choice.device_class == "compute-domain-default-channel.nvidia.com"
    assert fact_of(Document(file="f", value={**value, "apiVersion": "example.com/v1"}), "team") is None


def test_an_object_inside_of_another_is_judged_in_there(catalog: Catalog) -> None:
    """With the path that leads to it; what only refers to an object is none."""
    job = _object("Job", "batch/v1", spec={"template": TEMPLATE})
    wrapped = _object(
        "AppWrapper", "workload.codeflare.dev/v1beta2", spec={"components": [{"template": job}, {"template": _object("ConfigMap")}]}
    )
    (subject,) = _read(catalog, wrapped).subjects
    assert dotted(subject.template) == "spec.components[0].template.spec.template"
    assert [dotted(part.at) for part in subject.parts] == ["spec.components[0].template.spec.template"]
    scaled = _object("ScaledJob", "example.com/v1", spec={"target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}})
    assert _read(catalog, scaled).subjects == ()


def test_an_api_group_that_is_gone_is_told(catalog: Catalog) -> None:
    """Its objects are judged as those that took their place."""
    manifest = _read(catalog, _object("Deployment", "extensions/v1beta1", spec={"template": TEMPLATE}))
    assert len(manifest.subjects) == 1
    assert manifest.aside == "extensions/v1beta1 is no longer served; write apps/v1"


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
    assert manifest.note == "Berth is not called in namespace kube-system"


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
        read_manifest(Document(file="f", value=recorded), catalog, "default", as_served=True)


def _pod(**spec: Any) -> dict[str, Any]:
    return _object(spec={**SPEC, **spec})


def _container(**fields: Any) -> dict[str, Any]:
    return _object(spec={"containers": [{"name": "c", **fields}]})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"kind": "Pod"}, "f.yaml, apiVersion: must be text such as v1 or batch/v1; found nothing (null)"),
        ({"apiVersion": "v1", "kind": ["Pod"]}, "f.yaml, kind: must be text such as Pod or Job; found a list"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": "x"}, 'f.yaml, metadata: must be a map; found the text "x"'),
        (_object(spec=None), "f.yaml, spec: must be a map; found nothing (null)"),
        (_object(), "f.yaml, spec: must be a map; found nothing (null)"),
        (_object(spec={"containers": None}), "f.yaml, spec.containers: must be a list of containers; found nothing (null)"),
        (_object(spec={"containers": []}), "f.yaml, spec.containers: must be a list of containers; found an empty list"),
        (_object(spec={"containers": "c"}), 'f.yaml, spec.containers: must be a list of containers; found the text "c"'),
        (_object(spec={"containers": [None]}), "f.yaml, spec.containers[0]: must be a map; found nothing (null)"),
        (_pod(tolerations="gpu"), 'f.yaml, spec.tolerations: must be a list; found the text "gpu"'),
        (_pod(affinity=[]), "f.yaml, spec.affinity: must be a map; found a list"),
        (_container(resources="1"), 'f.yaml, spec.containers[0].resources: must be a map; found the text "1"'),
        (
            _container(resources={"limits": {"nvidia.com/gpu": {"a": 1}}}),
            'f.yaml, spec.containers[0].resources.limits["nvidia.com/gpu"]: must be a quantity such as 1; found a map',
        ),
        ({**_object(), "metadata": {"name": 8}}, "f.yaml, metadata.name: must be text; found the number 8; put it in quotes"),
        ({**_object("ConfigMap"), "metadata": {"name": {"a": 1}}}, "f.yaml, metadata.name: must be text; found a map"),
        ({**_object("Boat", "example.com/v1"), "metadata": {"namespace": [1]}}, "f.yaml, metadata.namespace: must be text; found a list"),
        (_container(name=8), "f.yaml, spec.containers[0].name: must be text; found the number 8; put it in quotes"),
        (
            _object("Workflow", "argoproj.io/v1alpha1", spec={"templates": [{"name": "a", "container": "x"}]}),
            'f.yaml, spec.templates[0].container: must be a map; found the text "x"',
        ),
        (
            _object("NIMService", "apps.nvidia.com/v1alpha1", spec={"resources": {"limits": {"nvidia.com/gpu": 1}}, "tolerations": "x"}),
            'f.yaml, spec.tolerations: must be a list; found the text "x"',
        ),
        (
            _object("SparkApplication", "sparkoperator.k8s.io/v1beta2", spec={"executor": {"gpu": {"name": 7, "quantity": 1}}}),
            "f.yaml, spec.executor.gpu.name: must be the name of a resource; found the number 7",
        ),
        (
            _container(resources={"requests": {"amd.com/gpu": True}}),
            'f.yaml, spec.containers[0].resources.requests["amd.com/gpu"]: must be a quantity such as 1; found the boolean true',
        ),
        (_object("Job", "batch/v1", spec=None), "f.yaml, spec: must be a map; found nothing (null)"),
        (_object("Job", "batch/v1", spec={}), f"f.yaml, spec.template: {WANTS_TEMPLATE} nothing (null)"),
        (_object("Job", "batch/v1", spec={"template": "x"}), f'f.yaml, spec.template: {WANTS_TEMPLATE} the text "x"'),
        (_object("Job", "batch/v1", spec={"template": {"spec": None}}), "f.yaml, spec.template.spec: must be a map; found nothing (null)"),
        (_object("Job", "batch/v1", spec={"template": {"foo": 1}}), "f.yaml, spec.template.spec: must be a map; found nothing (null)"),
        (_object("CronJob", "batch/v1", spec={"jobTemplate": []}), "f.yaml, spec.jobTemplate: must be a map; found a list"),
        (
            _object("PyTorchJob", "kubeflow.org/v1", spec={"pytorchReplicaSpecs": []}),
            "f.yaml, spec.pytorchReplicaSpecs: must be a map; found a list",
        ),
        (_object("RayCluster", "ray.io/v1", spec={"workerGroupSpecs": {}}), "f.yaml, spec.workerGroupSpecs: must be a list; found a map"),
        (_object("AdmissionReview", "admission.k8s.io/v1"), "f.yaml, request: must be a map; found nothing (null)"),
        (
            _object("AdmissionReview", "admission.k8s.io/v1", request={"operation": "DELETE", "object": None}),
            "f.yaml, request.object: must be an object, a map with apiVersion and kind; found nothing (null)",
        ),
        (
            _object("AdmissionReview", "admission.k8s.io/v1", request={"object": _pod(), "resource": {"group": "", "resource": "pods"}}),
            "f.yaml: request.operation is missing; Berth evaluates CREATE and UPDATE",
        ),
    ],
)
def test_bad_input_says_where_and_what_was_wanted(catalog: Catalog, value: dict[str, Any], message: str) -> None:
    """File, path, what was wanted, what was found."""
    assert _error(catalog, value) == f"berth: {message}"


@pytest.mark.parametrize(
    "value",
    [
        _container(resources=None),
        _container(resources={"limits": None}),
        _container(resources={"limits": {"nvidia.com/gpu": None}}),
        _container(resources={"limits": {"cpu": "$CPUS", "nvidia.com/gpu": "1e0"}}),
        _container(resources={"limits": {"nvidia.com/gpu": "$GPUS"}}),
        _container(image=7),
        _pod(tolerations=None, nodeSelector=None, affinity=None, initContainers=None),
        {**_pod(), "metadata": None},
    ],
    ids=str,
)
def test_what_the_api_server_takes_or_denies_itself_is_judged(catalog: Catalog, value: dict[str, Any]) -> None:
    """Null is absent, and what is no business of accelerators is left to the API server."""
    assert len(_read(catalog, value).subjects) == 1


JOB: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"inner": {"apiVersion": "v1", "kind": "Pod", "spec": {}}}}


def test_each_is_found_with_its_path() -> None:
    """In the order of the manifest; not those inside of one that was found."""
    value = {"spec": {"components": [{"template": JOB}, {"other": [JOB]}]}, "objects": [JOB]}
    assert [dotted(path) for path, _ in inside(value)] == ["spec.components[0].template", "spec.components[1].other[0]", "objects[0]"]


def test_a_reference_is_none() -> None:
    """It has no spec; a status and an object's own metadata say nothing of what will be made."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    assert list(inside({"spec": {"scaleTargetRef": reference}, "metadata": {"x": JOB}, "status": {"job": JOB}})) == []


def test_a_great_many_are_cut() -> None:
    """What nobody writes costs no more than what people do."""
    assert len(list(inside({"spec": [JOB] * 1000}))) == 64
