"""A replica that follows a real API server's nodes, ResourceSlices and objects of the GPU Operator, by the rights that it is shipped with:
how GPUs are offered, and which labels are written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.testcluster.addons.berth import SCOPE, Berth, create_namespace, registered
from tests.testcluster.addons.installed import install
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

GPU, NODE, NAME = "nvidia.com/gpu", "node-7", "gpu-modes"
POLICY: Raw = {
    "apiVersion": "berth.dev/v1alpha1",
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "ampere"},
    "spec": {"mode": "Enforce", "require": {"families": {"in": ["ampere"]}}},
}
SLICE: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "node-7-gpu.nvidia.com"},
    "spec": {
        "driver": "gpu.nvidia.com",
        "nodeName": NODE,
        "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}"} for number in range(8)],
    },
}
POD: Raw = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "p-"},
    "spec": {"containers": [{"name": "main", "image": "x.invalid/x", "resources": {"limits": {GPU: "1"}}}]},
}
FAMILY = "nvidia.com/gpu.family"


def definition(kind: str, plural: str, version: str) -> Raw:
    """One of the GPU Operator's kinds, as far as it is read."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.nvidia.com"},
        "spec": {"group": "nvidia.com", "names": names, "scope": "Cluster", "versions": [served]},
    }


def stack(kind: str, version: str) -> Raw:
    return {"apiVersion": f"nvidia.com/{version}", "kind": kind, "metadata": {"name": "operator"}, "spec": {}}


def node(**labels: str) -> Raw:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": {"nvidia.com/gpu.present": "true", **labels}}}


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with the operator's kinds and one node, on which nothing but the test acts."""
    with control_plane(request.session, Options(kubelets=False, controllers="namespace-controller")) as cluster:
        for kind, plural, version in (("ClusterPolicy", "clusterpolicies", "v1"), ("GPUCluster", "gpuclusters", "v1alpha1")):
            assert cluster.api.apply(definition(kind, plural, version)).ok
            path = f"/apis/nvidia.com/{version}/{plural}"
            cluster.wait_for(partial(_served, cluster, path), f"{path} to be served")
        cluster.api.create(node(**{FAMILY: "ampere", "nvidia.com/gfd.timestamp": "1700000000"}))
        yield cluster


def _served(cluster: Cluster, path: str) -> bool:
    return cluster.api.call("GET", path).ok


@pytest.fixture(scope="module")
def replica(world: Cluster) -> Iterator[Berth]:
    kubeconfig: Path = install(world)
    assert world.api.apply(POLICY).ok
    with registered(world, NAME, kubeconfig) as berth:
        create_namespace(world, NAME, {SCOPE: NAME})
        yield berth


def plugged(world: Cluster, number: str) -> None:
    """What the device plugin counts."""
    amounts = {"cpu": "96", "pods": "110", GPU: number}
    world.api.patch(node(), {"status": {"capacity": {**amounts, GPU: "8"}, "allocatable": amounts}}, subresource="status")


def keys(world: Cluster) -> set[str]:
    """The labels that a new pod's required terms name; its denial, where what nodes show changes between its two calls."""
    reply = world.api.try_create(POD, NAME)
    if not reply.ok:
        return {reply.message}
    stored = reply.body
    world.api.delete(stored, grace=0)
    affinity = stored["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    return {one["key"] for term in affinity.get("nodeSelectorTerms", ()) for one in term["matchExpressions"]}


def told(world: Cluster) -> str:
    """The message of the policy's condition; "" while there is none."""
    conditions = (world.api.get("berth.dev/v1alpha1", "ClusterGPUPolicy", "ampere") or {}).get("status", {}).get("conditions", ())
    return next((one["message"] for one in conditions if one["type"] == "AdvertisedTwice"), "")


def test_a_gpu_that_is_offered_twice_is_told_until_one_way_is_turned_off(world: Cluster, replica: Berth) -> None:
    """In the metrics, on the page of the replica, in its log, and in the policy's status."""
    plugged(world, "8")
    world.wait_for(lambda: replica.metric("berth_gpu_nodes", vendor="nvidia", mode="device-plugin") == 1, "the device plugin to be seen")
    world.api.create(SLICE)
    world.wait_for(lambda: replica.metric("berth_gpu_nodes", vendor="nvidia", mode="both") == 1, "the driver to be seen")
    assert f"first on node {NODE}" in replica.page("/readyz").body.decode()
    assert len(replica.events("gpu_nodes")) == 1
    message = world.wait_for(lambda: told(world), "the condition")
    assert f"kubectl label node {NODE} nvidia.com/gpu.deploy.device-plugin=false --overwrite" in message
    plugged(world, "0")
    world.wait_for(lambda: replica.metric("berth_gpu_nodes", vendor="nvidia", mode="dra") == 1, "the device plugin to be gone")
    assert "nodes:" not in replica.page("/readyz").body.decode()
    world.wait_for(lambda: not told(world), "the condition to be gone")


def test_no_term_is_written_on_labels_that_were_left_behind(world: Cluster, replica: Berth) -> None:
    """As the operator goes from a ClusterPolicy to a GPUCluster, and somebody then runs GPU Feature Discovery beside it."""
    world.api.create(stack("ClusterPolicy", "v1"))
    assert keys(world) == {FAMILY}
    world.api.create(stack("GPUCluster", "v1alpha1"))
    assert keys(world) == {FAMILY}, "it does not act beside a ClusterPolicy"
    world.api.delete(stack("ClusterPolicy", "v1"))
    world.wait_for(lambda: keys(world) == set(), "terms to be left out")
    assert replica.metric("berth_labels_unmaintained") == 4
    assert "labels nvidia.com/gpu.family" in replica.page("/readyz").body.decode()
    world.api.patch(node(), {"metadata": {"labels": {"nvidia.com/gfd.timestamp": "4000000000"}}})
    world.wait_for(lambda: keys(world) == {FAMILY}, "terms to be written again")
    assert replica.metric("berth_labels_unmaintained") == 0
