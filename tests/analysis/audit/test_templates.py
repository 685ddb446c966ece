"""The pods that workloads would make, as they are judged in place of pods: of the right workload, under the right account, as written."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given

from analysis.audit.assessment import Assessment
from analysis.audit.ledger import Ledger
from analysis.audit.stored_pod import Controller, StoredPod, widest
from analysis.audit.templates import MOST, MOST_BYTES, STAND_IN, template_pods
from analysis.audit.workload_report import OPEN_REPORTS
from catalog.prices import prices
from documents.yaml_reader import one_value
from policies.document import Document
from policies.facts.cluster_facts import ClusterFacts
from policies.policy import Default, DeviceLimit, Policy, PolicySet, Require
from policies.workloads.pods import ALONE, Around
from tests.support.cases.kind_manifests import FOUND
from tests.support.generators.random_worlds import catalog
from tests.support.generators.strategies import examples, randoms
from tests.support.snapshots import build

WIDE = widest(catalog())
POLICIES = (
    Policy(name="grace", mode="Audit", default=Default(grace=600)),
    Policy(name="tolerate", mode="Enforce", default=Default(accelerator_taints=True)),
)
SNAPSHOT = build(PolicySet(policies=POLICIES), catalog(), cluster=ClusterFacts())


def workload(kind: str, *, gpus: int = 1, **changes: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "c:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers, **changes.pop("pod", {})}}
    spec = {"jobTemplate": {"spec": {"template": template}}} if kind == "CronJob" else {"template": template}
    metadata = {"name": "w", "namespace": "n", "uid": "u", "creationTimestamp": "2026-11-23T08:00:00Z", **changes.pop("metadata", {})}
    return {"metadata": metadata, "spec": spec, **changes}


def made(kind: str, **changes: Any) -> tuple[StoredPod, ...]:
    version = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    return template_pods(workload(kind, **changes), version, kind, catalog(), WIDE)


@pytest.mark.parametrize(
    ("kind", "owner", "user"),
    [
        ("Deployment", ("ReplicaSet", STAND_IN + "u"), "replicaset-controller"),
        ("StatefulSet", ("StatefulSet", "u"), "statefulset-controller"),
        ("DaemonSet", ("DaemonSet", "u"), "daemon-set-controller"),
        ("Job", ("Job", "u"), "job-controller"),
        ("CronJob", ("Job", STAND_IN + "u"), "job-controller"),
    ],
)
def test_a_pod_is_made_as_its_controller_makes_it(kind: str, owner: tuple[str, str], user: str) -> None:
    """Its owner is what would own it, and the account the controller's."""
    (pod,) = made(kind)
    assert pod.owner is not None
    assert (pod.owner.kind, pod.owner.uid) == owner
    assert pod.request().user == f"system:serviceaccount:kube-system:{user}"
    assert (pod.template, pod.node, pod.finished, pod.namespace, pod.created) == (True, "", False, "n", "2026-11-23T08:00:00Z")


def test_what_makes_no_pods_of_its_own_has_none() -> None:
    """A Job that has finished, a workload that another one owns, one of another kind, one that can't be read."""
    owner = {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": "x", "uid": "x", "controller": True}]}
    assert made("Job", status={"conditions": [{"type": "Complete", "status": "True"}]}) == ()
    assert made("Job", status={"conditions": [{"type": "Suspended", "status": "True"}]}) != ()
    assert made("Job", metadata=owner) == ()
    assert template_pods({"metadata": {"name": "w"}, "spec": {}}, "x.example/v1", "Thing", catalog(), WIDE) == ()
    assert template_pods({"metadata": {"name": "w"}, "spec": {"template": []}}, "apps/v1", "Deployment", catalog(), WIDE) == ()
    assert MOST >= 1


def test_a_node_in_a_template_is_the_authors() -> None:
    """No scheduler has seen it."""
    (pod,) = made("Deployment", pod={"nodeName": "gpu-1"})
    assert pod.request().pod["spec"]["nodeName"] == "gpu-1"


def test_templates_count_while_there_are_no_pods() -> None:
    """In the report as what they are, and in no count of pods; what pods lack, which they will be given, is not missed."""
    ledger, (template,) = Ledger(), made("CronJob")
    assessment = Assessment(SNAPSHOT, prices(catalog()), {STAND_IN + "u": Controller("batch/v1", "CronJob", "w", "u")})
    audited = assessment.of(template)
    assert audited is not None
    ledger.put(audited)
    (key,) = ledger.workloads()
    assert (key.kind, key.name, key.uid) == ("CronJob", "w", "u")
    report = ledger.report(key, OPEN_REPORTS)
    assert report is not None
    (result,) = report["results"]
    assert (result["properties"]["finding"], result["properties"]["pods"], result["properties"]["templates"]) == ("would-change", "0", "1")
    assert ledger.totals() == {}
    ledger.put(audited._replace(stored=replace(template, template=False, name="w-x")))
    report = ledger.report(key, OPEN_REPORTS)
    assert report is not None
    assert (report["results"][0]["properties"]["pods"], "templates" in report["results"][0]["properties"]) == ("1", False)
    assert ledger.totals()["ClusterGPUPolicy/grace"].pods == 1


def test_a_template_that_is_denied_today_is_found() -> None:
    """By a policy in Enforce: its workload has no pods because of that, and nobody reads the Events of a ReplicaSet."""
    denying = Policy(name="few", mode="Enforce", require=Require(gpus_per_pod=DeviceLimit(max=1)))
    snapshot = build(PolicySet(policies=(denying,)), catalog(), cluster=ClusterFacts())
    (template,) = made("Job", gpus=2)
    found = Assessment(snapshot, prices(catalog()), {}).of(template)
    assert found is not None
    assert [outcome.finding for outcome in found.outcomes] == ["no-longer-fits"]


CONTAINERS = [{"name": "node", "image": "c:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]
TEMPLATE = {"spec": {"containers": CONTAINERS}}
JOBS = {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": TEMPLATE}}}]}
RUNTIME = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "spec": {"template": {"spec": JOBS}}}


def custom(kind: str, api_version: str, spec: dict[str, Any], around: Around = ALONE, **changes: Any) -> tuple[StoredPod, ...]:
    metadata = {"name": "w", "namespace": "n", "uid": "u", **changes.pop("metadata", {})}
    return template_pods({"metadata": metadata, "spec": spec, **changes}, api_version, kind, catalog(), WIDE, around)


@pytest.mark.parametrize(
    ("kind", "api_version", "spec", "owner"),
    [
        ("JobSet", "jobset.x-k8s.io/v1alpha2", JOBS, ("Job", STAND_IN + "u")),
        ("JobSet", "jobset.x-k8s.io/v9", JOBS, ("Job", STAND_IN + "u")),
        ("RayCluster", "ray.io/v1", {"workerGroupSpecs": [{"template": TEMPLATE}]}, ("RayCluster", "u")),
        ("RayJob", "ray.io/v1", {"rayClusterSpec": {"workerGroupSpecs": [{"template": TEMPLATE}]}}, ("RayCluster", STAND_IN + "u")),
        ("PyTorchJob", "kubeflow.org/v1", {"pytorchReplicaSpecs": {"Worker": {"template": TEMPLATE}}}, ("PyTorchJob", "u")),
        (
            "LeaderWorkerSet",
            "leaderworkerset.x-k8s.io/v1",
            {"leaderWorkerTemplate": {"workerTemplate": TEMPLATE}},
            ("StatefulSet", STAND_IN + "u"),
        ),
        ("Job", "batch.volcano.sh/v1alpha1", {"tasks": [{"template": TEMPLATE}]}, ("Job", "u")),
        ("StatefulSet", "apps.kruise.io/v1beta1", {"template": TEMPLATE}, ("StatefulSet", "u")),
    ],
)
def test_a_custom_workload_has_the_pods_that_its_operator_makes(
    kind: str, api_version: str, spec: dict[str, Any], owner: tuple[str, str]
) -> None:
    """Whatever version of its group it is read in; two kinds of one name are two workloads."""
    (pod,) = custom(kind, api_version, spec)
    assert pod.owner is not None
    assert (pod.owner.kind, pod.owner.uid) == owner
    assert pod.name == f"{kind}.{api_version.partition('/')[0]}/w/0"


@pytest.mark.parametrize(
    ("kind", "api_version", "spec", "status"),
    [
        ("JobSet", "jobset.x-k8s.io/v1alpha2", JOBS, {"conditions": [{"type": "Completed", "status": "True"}]}),
        ("Job", "batch.volcano.sh/v1alpha1", {"tasks": [{"template": TEMPLATE}]}, {"state": {"phase": "Completed"}}),
        ("RayJob", "ray.io/v1", {"rayClusterSpec": {"headGroupSpec": {"template": TEMPLATE}}}, {"jobDeploymentStatus": "Failed"}),
        (
            "Workflow",
            "argoproj.io/v1alpha1",
            {"templates": [{"container": CONTAINERS[0]}]},
            {"finishedAt": "2026-11-23T08:00:00Z", "phase": "Succeeded"},
        ),
    ],
)
def test_what_has_finished_makes_no_pods(kind: str, api_version: str, spec: dict[str, Any], status: dict[str, Any]) -> None:
    """As each operator says it; a status of another form says nothing."""
    assert custom(kind, api_version, spec, status=status) == ()
    others: tuple[Any, ...] = ({}, {"conditions": [{"type": "Completed", "status": "False"}, 7]}, {"state": "Completed"}, [], "x")
    for other in others:
        assert custom(kind, api_version, spec, status=other) != ()


def test_a_service_never_finishes() -> None:
    """Its conditions are about what is now."""
    status = {"conditions": [{"type": "Failed", "status": "True"}]}
    assert (
        custom("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", {"leaderWorkerTemplate": {"workerTemplate": TEMPLATE}}, status=status)
        != ()
    )


def test_pods_of_two_objects() -> None:
    """Are made of both; without the other one nothing is known of them."""
    spec = {"runtimeRef": {"name": "torch"}, "trainer": {"resourcesPerNode": {"limits": {"nvidia.com/gpu": "2"}}}}
    found = {"torch": Document(file="", value=RUNTIME)}
    (pod,) = custom("TrainJob", "trainer.kubeflow.org/v1alpha1", spec, Around(find=lambda kinds, namespace, name: found.get(name)))
    assert pod.request().pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert custom("TrainJob", "trainer.kubeflow.org/v1alpha1", spec) == ()


def test_what_is_read_only_in_part_is_passed_over() -> None:
    """A patch in a text that nobody can read may be of anything."""
    spec = {"templates": [{"container": CONTAINERS[0], "podSpecPatch": "{"}]}
    assert custom("Workflow", "argoproj.io/v1alpha1", spec) == ()


def test_the_templates_of_one_workload_are_bounded() -> None:
    """In number and in bytes: what is past that is passed over, and the others are judged."""
    group = {"template": TEMPLATE}
    long = {"spec": {"containers": CONTAINERS, "tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(MOST_BYTES // 20)]}}
    assert len(custom("RayCluster", "ray.io/v1", {"workerGroupSpecs": [group] * 100})) == MOST
    (pod,) = custom("RayCluster", "ray.io/v1", {"workerGroupSpecs": [{"template": long}, group]})
    assert pod.name.endswith("/1")


ODD: tuple[Any, ...] = (None, 0, True, 1.5, "", "x" * 999, [], {}, [None], [[]], {"": 1}, {"limits": "x"}, 10**30, "{{inputs.gpus}}")


@examples(8, 1000)
@given(randoms())
def test_no_content_can_make_it_raise(random: Random) -> None:
    """Manifests of every kind with parts of other types: schemas of operators let pass much."""

    def changed(value: Any) -> Any:
        if random.random() < 0.06:
            return random.choice(ODD)
        if isinstance(value, dict):
            return {key: changed(inner) for key, inner in value.items()}
        return [changed(inner) for inner in value] if isinstance(value, list) else value

    def manifest(value: dict[str, Any]) -> dict[str, Any]:
        return {name: changed(part) for name, part in value.items()} | {
            "metadata": {"name": "w", "uid": "u", "labels": changed({"a": "b"})}
        }

    for workload, value in FOUND:
        found = template_pods(
            manifest(value),
            value["apiVersion"],
            value["kind"],
            catalog(),
            WIDE,
            Around(texts=one_value),
        )
        assert len(found) <= MOST, workload.name
        assert sum(len(one.shared) for one in found) <= MOST_BYTES
        assert all(one.request().pod["spec"] for one in found)
