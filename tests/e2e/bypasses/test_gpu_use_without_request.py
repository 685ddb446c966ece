"""deploy/gpu-use-without-request.yaml on a real API server: who reaches GPUs without asking for them is warned, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from documents.files import read_catalog
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster

FILE = Path(__file__).parents[3] / "deploy" / "gpu-use-without-request.yaml"
SCOPE = "tests.berth.dev/gpu-use"
GPU: Raw = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
ALL: Raw = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> Iterator[str]:
    """The only one where the policy acts, so that other tests on this cluster meet no warning."""
    policy, binding = yaml.safe_load_all(FILE.read_text())
    binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"] = {SCOPE: "on"}
    for value in (policy, binding):
        reply = cluster.api.apply(value)
        assert (reply.ok, reply.warnings) == (True, ()), reply.message
    name = create_namespace(cluster, "gpu-use", {SCOPE: "on"})
    cluster.wait_for(lambda: tried(cluster, name, spec(ALL)).warnings, "the policy to be in force")
    yield name
    for value in (binding, policy):
        cluster.api.delete(value)
    cluster.api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def spec(container: Raw, **more: object) -> Raw:
    return {"containers": [{"name": "main", "image": "i:1", **deepcopy(container)}], **more}


def tried(cluster: Cluster, namespace: str, pod: Raw) -> Reply:
    return cluster.api.try_create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod}, namespace, dry_run=True)


def of_path(path: str, container: Raw | None = None) -> Raw:
    return spec(container or {}, volumes=[{"name": "devices", "hostPath": {"path": path}}])


@pytest.mark.parametrize(
    ("pod", "start"),
    [
        (spec(ALL), 'container "main" can use GPUs that it does not request'),
        (spec({"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0,1"}]}), 'container "main" can use GPUs'),
        (spec({**ALL, "resources": {"limits": {"nvidia.com/gpu": "0"}}}), 'container "main" can use GPUs'),
        (spec({}, initContainers=[{"name": "first", "image": "i:1", **ALL}]), 'container "first" can use GPUs'),
        (of_path("/dev"), 'volume "devices" mounts devices of the node, /dev,'),
        (of_path("/dev/nvidia0"), 'volume "devices" mounts devices of the node, /dev/nvidia0,'),
        (of_path("/dev/dri/renderD128"), 'volume "devices" mounts devices of the node, /dev/dri/renderD128,'),
        (of_path("//dev/./nvidia0"), 'volume "devices" mounts devices of the node, //dev/./nvidia0,'),
        (of_path("/dev/kfd"), 'volume "devices" mounts devices of the node, /dev/kfd,'),
    ],
)
def test_who_reaches_gpus_without_asking_is_warned(cluster: Cluster, namespace: str, pod: Raw, start: str) -> None:
    """In one sentence that says what to type; the pod is created all the same."""
    reply = tried(cluster, namespace, pod)
    assert reply.ok, reply.message
    assert len(reply.warnings) == 1, reply.warnings
    assert start in reply.warnings[0]
    assert "set resources.limits, such as nvidia.com/gpu: 1" in reply.warnings[0]


@pytest.mark.parametrize(
    "pod",
    [
        spec({}),
        spec({**ALL, **GPU}),
        spec({"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]}),
        spec({"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
        of_path("/dev/nvidia0", GPU),
        of_path("/dev/shm"),
        of_path("/dev/fuse"),
        of_path("/var/log"),
        of_path("/devices"),
        spec({}, volumes=[{"name": "v", "emptyDir": {}}]),
    ],
)
def test_nobody_else_is(cluster: Cluster, namespace: str, pod: Raw) -> None:
    """Who asks for a device, or reaches none."""
    reply = tried(cluster, namespace, pod)
    assert (reply.ok, reply.warnings) == (True, ()), reply.message


def test_a_runtime_class_for_gpus_is_told(cluster: Cluster, namespace: str) -> None:
    """By its name, of whatever handler."""
    runtime: Raw = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia-cdi"}, "handler": "nvidia"}
    cluster.api.create(runtime)
    try:
        cluster.wait_for(lambda: tried(cluster, namespace, spec({}, runtimeClassName="nvidia-cdi")).ok, "the class to be known")
        (warning,) = tried(cluster, namespace, spec({}, runtimeClassName="nvidia-cdi")).warnings
        assert "runtimeClassName nvidia-cdi is for GPUs, but no container requests a GPU" in warning
        assert tried(cluster, namespace, spec(GPU, runtimeClassName="nvidia-cdi")).warnings == ()
    finally:
        cluster.api.delete(runtime)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"])
def test_a_workload_is_told_too(cluster: Cluster, namespace: str, kind: str) -> None:
    """Whose pods' warnings nobody reads."""
    labels = {"app": "a"}
    template: Raw = {"metadata": {"labels": labels}, "spec": spec(ALL, restartPolicy="Never" if kind.endswith("Job") else "Always")}
    inner: Raw = {"template": template}
    if kind == "CronJob":
        inner = {"schedule": "0 0 * * *", "jobTemplate": {"spec": inner}}
    elif kind != "Job":
        inner |= {"selector": {"matchLabels": labels}}
    group = "batch/v1" if kind.endswith("Job") else "apps/v1"
    made: Raw = {"apiVersion": group, "kind": kind, "metadata": {"name": "w"}, "spec": inner}
    reply = cluster.api.try_create(made, namespace, dry_run=True)
    assert reply.ok, reply.message
    assert ['container "main" can use GPUs' in one for one in reply.warnings] == [True]


def test_the_operators_namespaces_are_those_that_berth_leaves_out() -> None:
    """As the catalog lists them."""
    _, binding = yaml.safe_load_all(FILE.read_text())
    (chosen,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert tuple(chosen["values"]) == read_catalog([]).excluded_namespaces
