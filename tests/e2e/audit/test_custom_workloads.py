"""Custom workloads under `berth audit --serve`, by the definitions that their authors publish (in ``make test`` without their schemas):
with and without pods, through the objects between them, and as kinds come and go. Operators that are no part of Kubernetes are played."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kube.tree import map_at
from tests.e2e.audit.audited import SPECS, Audited
from tests.support.counts import PROVE, only_in_prove
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import installed, operators
from tests.testcluster.addons.audit import install_reports
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Options
from tests.testcluster.fixtures import control_plane

FIRST = {
    "clustertrainingruntimes.trainer.kubeflow.org",
    "jobsets.jobset.x-k8s.io",
    "leaderworkersets.leaderworkerset.x-k8s.io",
    "pytorchjobs.kubeflow.org",
    "rayclusters.ray.io",
    "rayjobs.ray.io",
    "trainjobs.trainer.kubeflow.org",
}
LATER = "clonesets.apps.kruise.io"
DEFINITION = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": LATER}}


def containers(gpus: int = 8, name: str = "node") -> Raw:
    limits = {"cpu": "1", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {"containers": [{"name": name, "image": "c:1", "resources": {"limits": limits}}]}


def template(gpus: int = 8) -> Raw:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {**containers(gpus), "restartPolicy": "Never"}}


def ray_cluster() -> Raw:
    worker = {"groupName": "w", "replicas": 1, "minReplicas": 0, "maxReplicas": 4, "rayStartParams": {}, "template": {"spec": containers()}}
    return {"headGroupSpec": {"rayStartParams": {}, "template": {"spec": containers(0)}}, "workerGroupSpecs": [worker]}


JOBS = {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": template()}}}]}
SUSPENDED: dict[tuple[str, str], Raw] = {
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): {**JOBS, "suspend": True},
    ("kubeflow.org/v1", "PyTorchJob"): {
        "runPolicy": {"suspend": True},
        "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": containers(8, "pytorch")}}},
    },
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): {"replicas": 0, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template()}},
    ("ray.io/v1", "RayCluster"): {**ray_cluster(), "suspend": True},
    ("ray.io/v1", "RayJob"): {"entrypoint": "x", "suspend": True, "rayClusterSpec": ray_cluster()},
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): {"suspend": True, "runtimeRef": {"name": "torch"}},
}
RUNTIME = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch"},
    "spec": {"template": {"spec": JOBS}},
}


@pytest.fixture(scope="module")
def audited(request: pytest.FixtureRequest) -> Iterator[Audited]:
    """No pod ever starts, so that those of a Job stay."""
    with control_plane(request.session, Options(kubelets=False)) as cluster:
        install_reports(cluster)
        installed.install(cluster)
        operators.define(cluster, [one for one in operators.definitions(catalog(), 10_000_000) if one.name in FIRST], schemas=PROVE)
        file = cluster.folder / "audit.kubeconfig"
        installed.write_kubeconfig(file, cluster, installed.token(cluster, account=installed.AUDITOR))
        found = Audited(cluster=cluster, kubeconfig=file, namespaces=[])
        for name in SPECS:
            found.policy(name)
        found.start()
        yield found


def create(audited: Audited, api_version: str, kind: str, spec: Raw, namespace: str, *, of: Raw | None = None, name: str = "train") -> Raw:
    """The object as stored, which ``of`` controls."""
    metadata: Raw = {"name": name}
    if of is not None:
        owner = {"apiVersion": of["apiVersion"], "kind": of["kind"], "name": of["metadata"]["name"], "uid": of["metadata"]["uid"]}
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    if kind == "Pod":
        metadata["labels"] = {"a": "b"}
    made = audited.cluster.api.create({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}, namespace)
    return {**made, "apiVersion": api_version, "kind": kind}


def counts(audited: Audited, namespace: str) -> dict[str, set[tuple[str, str]]]:
    """Kind of a workload -> (pods, templates) of the findings that GPUs are too many, in its report."""
    return {
        report["scope"]["kind"]: {
            (one["properties"]["pods"], one["properties"].get("templates", "0"))
            for one in report["results"]
            if one["policy"] == "ClusterGPUPolicy/few"
        }
        for (where, _), report in audited.reports().items()
        if where == namespace
    }


def test_workloads_without_pods_are_judged_by_their_templates(audited: Audited) -> None:
    """Of every kind, those included whose templates are in other objects; the pods of a runtime that is there later are found then."""
    namespace = create_namespace(audited.cluster, "suspended", {})
    for (api_version, kind), spec in SUSPENDED.items():
        create(audited, api_version, kind, spec, namespace)
    wanted = {kind: {("0", "1")} for _, kind in SUSPENDED}
    audited.until(lambda: counts(audited, namespace).keys() >= wanted.keys() - {"TrainJob"}, "their reports")
    assert "TrainJob" not in counts(audited, namespace)
    audited.cluster.api.create(RUNTIME)
    audited.until(lambda: counts(audited, namespace) == wanted, "the TrainJob's report")
    audited.up_to_date()


def test_pods_count_on_the_workload_on_top(audited: Audited) -> None:
    """Whatever stands between: that has no report of its own, and the template counts no more."""
    namespace = create_namespace(audited.cluster, "running", {})
    made = {kind: create(audited, version, kind, spec, namespace) for (version, kind), spec in SUSPENDED.items() if kind != "RayCluster"}
    audited.until(lambda: counts(audited, namespace) == {kind: {("0", "1")} for kind in made}, "their reports")
    ray = create(audited, "ray.io/v1", "RayCluster", ray_cluster(), namespace, of=made["RayJob"])
    sets = create(audited, "jobset.x-k8s.io/v1alpha2", "JobSet", JOBS, namespace, of=made["TrainJob"], name="of-a-trainjob")
    create(audited, "batch/v1", "Job", {"template": template()}, namespace, of=sets, name="of-a-trainjob")
    create(audited, "batch/v1", "Job", {"template": template()}, namespace, of=made["JobSet"], name="of-a-jobset")
    create(audited, "v1", "Pod", containers(), namespace, of=ray, name="ray")
    create(audited, "v1", "Pod", containers(), namespace, of=made["PyTorchJob"], name="torch")
    leading = {"replicas": 1, "serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": _leader()}
    create(audited, "apps/v1", "StatefulSet", leading, namespace, of=made["LeaderWorkerSet"], name="group")
    pod = audited.cluster.wait_for(lambda: audited.cluster.api.get("v1", "Pod", "group-0", namespace), "the leader")
    working = {"replicas": 1, "serviceName": "s", "selector": {"matchLabels": {"a": "c"}}, "template": _worker()}
    create(audited, "apps/v1", "StatefulSet", working, namespace, of={**pod, "apiVersion": "v1", "kind": "Pod"}, name="workers")
    audited.until(lambda: counts(audited, namespace) == {kind: {("1", "0")} for kind in made}, "their pods to count")
    audited.up_to_date()


def _leader() -> Raw:
    """It has no GPU, as many have none."""
    return {"metadata": {"labels": {"a": "b", "leaderworkerset.sigs.k8s.io/worker-index": "0"}}, "spec": containers(0)}


def _worker() -> Raw:
    return {"metadata": {"labels": {"a": "c", "leaderworkerset.sigs.k8s.io/worker-index": "1"}}, "spec": containers()}


def test_what_has_finished_has_no_report(audited: Audited) -> None:
    """It makes no pods any more."""
    namespace = create_namespace(audited.cluster, "finished", {})
    made = create(audited, "ray.io/v1", "RayJob", SUSPENDED["ray.io/v1", "RayJob"], namespace)
    audited.until(lambda: "RayJob" in counts(audited, namespace), "its report")
    audited.cluster.api.patch(made, {"status": {"jobDeploymentStatus": "Complete"}}, subresource="status")
    audited.until(lambda: not counts(audited, namespace), "its report to go")


def test_kinds_that_come_and_go(audited: Audited) -> None:
    """One that is installed while the audit runs is followed, and takes its reports along when it goes."""
    assert audited.running is not None
    namespace = create_namespace(audited.cluster, "kinds", {})
    operators.define(audited.cluster, [one for one in operators.definitions(catalog(), 100_000) if one.name == LATER], schemas=PROVE)
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template()}
    create(audited, "apps.kruise.io/v1alpha1", "CloneSet", spec, namespace)
    audited.until(lambda: counts(audited, namespace) == {"CloneSet": {("0", "1")}}, "the kind to be followed")
    audited.up_to_date()
    audited.cluster.api.delete(DEFINITION)
    audited.until(lambda: not counts(audited, namespace), "its reports to go")
    audited.up_to_date()
    assert not audited.running.events("template_failed")


@only_in_prove
def test_a_right_that_is_missing(audited: Audited) -> None:
    """Is told once, and all else goes on; `make test` has it in tests/webhook/audit/test_custom_kinds.py."""
    role = audited.cluster.api.get("rbac.authorization.k8s.io/v1", "ClusterRole", "berth-audit")
    assert role is not None
    left = [rule for rule in role["rules"] if rule["apiGroups"] != ["ray.io"]]
    named: dict[str, Any] = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "berth-audit"}}
    audited.cluster.api.patch(named, {"rules": left})
    running = audited.restart()
    namespace = create_namespace(audited.cluster, "rights", {})
    create(audited, "ray.io/v1", "RayJob", SUSPENDED["ray.io/v1", "RayJob"], namespace)
    create(audited, "jobset.x-k8s.io/v1alpha2", "JobSet", SUSPENDED["jobset.x-k8s.io/v1alpha2", "JobSet"], namespace)
    audited.until(lambda: counts(audited, namespace) == {"JobSet": {("0", "1")}}, "what it may read")
    told = [one for one in running.events("kind_failed") if map_at(one).get("kind") == "RayJob.ray.io"]
    assert len(told) == 1
    assert "Berth may not read rayjobs.ray.io" in told[0]["error"]
    audited.cluster.api.patch(named, {"rules": role["rules"]})
    audited.restart()
    audited.until(lambda: "RayJob" in counts(audited, namespace), "what it may read again")
