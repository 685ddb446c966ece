"""Queues on a real API server: what is stored of a silent pod and a silent workload, and what is denied of those past a queue."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.testcluster.addons.berth import SCOPE, Berth, registered
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import free_port

LABEL, KAI = "kueue.x-k8s.io/queue-name", "kai.scheduler/queue"
_number = count()


@pytest.fixture(scope="module")
def berth(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Berth]:
    """Pods go to KAI where their namespace is KAI's, workloads to Kueue where it is Kueue's; both are required there."""
    policies = []
    for system in ("kai", "kueue"):
        spec = {
            "mode": "Enforce",
            "match": {"namespaceSelector": {"matchLabels": {"queue": system}}},
            "default": {"queue": {system: "team-a"}},
            "require": {"queue": {system: ["team-a"]}},
        }
        policies.append({"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": system}, "spec": spec})
    folder: Path = tmp_path_factory.mktemp("queues")
    (folder / "policies.yaml").write_text(yaml.safe_dump_all(policies))
    (folder / "namespaces.yaml").write_text(yaml.safe_dump_all([named(system) for system in ("kai", "kueue")]))
    options = ("--platforms", "gfd", "--from", str(folder / "namespaces.yaml"), "--listen", f"127.0.0.1:{free_port()}")
    with registered(cluster, f"queues-{next(_number)}", (folder / "policies.yaml",), *options, by=("--queues",)) as started:
        yield started


def named(system: str) -> Raw:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"in-{system}", "labels": {"queue": system}}}


@pytest.fixture(params=["kai", "kueue"])
def system(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def namespace(cluster: Cluster, berth: Berth, system: str) -> str:
    """Of the name that Berth was told of."""
    made = named(system)
    made["metadata"]["labels"][SCOPE] = berth.name
    reply = cluster.api.apply(made)
    assert reply.ok, reply.message
    return f"in-{system}"


def pod(metadata: Raw | None = None, **spec: Any) -> Raw:
    container = {"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "trainer-", **(metadata or {})},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def job(metadata: Raw | None = None) -> Raw:
    template = {"spec": pod()["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": "train-", **(metadata or {})},
        "spec": {"template": template},
    }


@pytest.mark.parametrize("system", ["kai"], indirect=True)
def test_a_silent_pod_is_kais(cluster: Cluster, namespace: str) -> None:
    """As it is stored."""
    reply = cluster.api.try_create(pod(), namespace)
    assert reply.ok, reply.message
    assert (reply.body["spec"]["schedulerName"], reply.body["metadata"]["labels"][KAI]) == ("kai-scheduler", "team-a")


PAST: dict[str, Raw] = {
    "another scheduler": pod(schedulerName="mine"),
    "another queue": pod({"labels": {KAI: "mine"}}, schedulerName="kai-scheduler"),
    "a label alone": pod({"labels": {KAI: "team-a"}}),
    "a node": pod({"labels": {KAI: "team-a"}}, schedulerName="kai-scheduler", nodeName="gpu-7"),
    "a node, and nothing else": pod(nodeName="gpu-7"),
    "a pod group": pod({"labels": {KAI: "team-a"}, "annotations": {"pod-group-name": "mine"}}, schedulerName="kai-scheduler"),
    "no pod grouper": pod(
        {"labels": {KAI: "team-a"}, "annotations": {"kai.scheduler/skip-podgrouper": "true"}}, schedulerName="kai-scheduler"
    ),
    "an owner": pod(
        {"labels": {KAI: "team-a"}, "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "m", "uid": "u"}]},
        schedulerName="kai-scheduler",
    ),
}


@pytest.mark.parametrize("system", ["kai"], indirect=True)
@pytest.mark.parametrize("way", PAST)
def test_a_way_past_kais_queue(cluster: Cluster, namespace: str, way: str) -> None:
    """Denied by the API server, in Berth's words."""
    reply = cluster.api.try_create(PAST[way], namespace)
    assert (reply.ok, "BERTH-144" in reply.message) == (False, True), reply.message


@pytest.mark.parametrize("system", ["kueue"], indirect=True)
def test_a_silent_workload_is_kueues(cluster: Cluster, namespace: str) -> None:
    """The label is on the Job as it is stored, and on no template; its controller's pods are admitted, anybody else's are not."""
    reply = cluster.api.try_create(job(), namespace)
    assert reply.ok, reply.message
    stored = reply.body
    assert stored["metadata"]["labels"][LABEL] == "team-a"
    assert LABEL not in stored["spec"]["template"]["metadata"].get("labels", {})
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": stored["metadata"]["name"],
        "uid": stored["metadata"]["uid"],
        "controller": True,
    }
    forged = cluster.api.try_create(pod({"ownerReferences": [owner]}), namespace)
    assert (forged.ok, "BERTH-144" in forged.message) == (False, True), forged.message
    cluster.wait_for(lambda: _pods_of(cluster, namespace, stored["metadata"]["name"]), "the Job's controller to make its pod")


def _pods_of(cluster: Cluster, namespace: str, name: str) -> list[Raw]:
    return cluster.api.list("v1", "Pod", namespace, labelSelector=f"batch.kubernetes.io/job-name={name}")


@pytest.mark.parametrize("system", ["kueue"], indirect=True)
def test_a_workload_of_another_queue_is_denied(cluster: Cluster, namespace: str) -> None:
    """When it is made."""
    other = cluster.api.try_create(job({"labels": {LABEL: "mine"}}), namespace)
    assert (other.ok, "BERTH-144" in other.message) == (False, True), other.message
