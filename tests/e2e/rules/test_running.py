"""How pods run, on a real API server: its own admission of priority and runtime classes comes before Berth, and again after it."""

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
from tests.testcluster.fixtures import NewNamespace

DEFAULT: Raw = {
    "maxRuntime": "24h",
    "sharedMemory": "8Gi",
    "runtimeClass": "gpu-runtime",
    "priorityClass": "gpu-batch",
    "schedulerName": "gpu-packing",
    "topology": "rack",
}
CLASSES: tuple[Raw, ...] = (
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "gpu-batch"},
        "value": 1000,
        "preemptionPolicy": "Never",
    },
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "gpu-runtime"},
        "handler": "nvidia",
        "overhead": {"podFixed": {"memory": "64Mi"}},
        "scheduling": {"nodeSelector": {"runtime": "gpu"}},
    },
)
_number = count()


@pytest.fixture
def berth(cluster: Cluster, tmp_path: Path) -> Iterator[Berth]:
    policy = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "running"}}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump({**policy, "spec": {"mode": "Enforce", "default": DEFAULT}}))
    listen = ("--listen", f"127.0.0.1:{free_port()}")
    for one in CLASSES:
        reply = cluster.api.try_create(one)
        assert reply.ok or reply.status == 409, reply.message
    with registered(cluster, f"running-{next(_number)}", (tmp_path / "policy.yaml",), "--platforms", "gfd", *listen) as started:
        yield started


@pytest.fixture
def namespace(cluster: Cluster, berth: Berth, new_namespace: NewNamespace) -> str:
    return new_namespace({SCOPE: berth.name})


def made(cluster: Cluster, namespace: str, **spec: Any) -> Raw:
    """The spec as it was stored."""
    container = {"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    metadata = {"generateName": "trainer-", "labels": {"batch.kubernetes.io/job-name": "j"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}
    reply = cluster.api.try_create(pod, namespace)
    assert reply.ok, reply.message
    stored: Raw = reply.body["spec"]
    return stored


def test_classes_are_worked_out_again_for_what_berth_wrote(cluster: Cluster, namespace: str) -> None:
    """Priority, preemption, overhead and nodes are those of the classes, though the API server had written others before."""
    spec = made(cluster, namespace)
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == ("gpu-batch", 1000, "Never")
    assert (spec["runtimeClassName"], spec["overhead"], spec["nodeSelector"]) == ("gpu-runtime", {"memory": "64Mi"}, {"runtime": "gpu"})


def test_the_rest_is_stored_as_it_was_written(cluster: Cluster, namespace: str) -> None:
    """A deadline, another scheduler, neighbours, and one volume of which the token's mount knows nothing."""
    spec = made(cluster, namespace)
    assert (spec["activeDeadlineSeconds"], spec["schedulerName"]) == (86400, "gpu-packing")
    (near,) = spec["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert near["podAffinityTerm"] == {"topologyKey": "rack", "labelSelector": {"matchLabels": {"batch.kubernetes.io/job-name": "j"}}}
    (volume,) = [volume for volume in spec["volumes"] if volume["name"] == "berth-shared-memory"]
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "8Gi"}
    (mount,) = [mount for mount in spec["containers"][0]["volumeMounts"] if mount["mountPath"] == "/dev/shm"]
    assert mount["name"] == volume["name"]


def test_an_author_who_chose_a_class_has_it(cluster: Cluster, namespace: str) -> None:
    """The built-in system classes aside, any that is named stays, with its number."""
    reply = cluster.api.try_create({**CLASSES[0], "metadata": {"name": "own"}, "value": 7})
    assert reply.ok or reply.status == 409, reply.message
    spec = made(cluster, namespace, priorityClassName="own", schedulerName="mine", activeDeadlineSeconds=60)
    assert (spec["priorityClassName"], spec["priority"], spec["schedulerName"], spec["activeDeadlineSeconds"]) == ("own", 7, "mine", 60)
