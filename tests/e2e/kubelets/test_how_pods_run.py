"""How pods run, by real kubelets: what policies fill in is what containers then have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from policies.engine import evaluate
from policies.request import Request
from tests.reference.compare import patched
from tests.support.cases import golden
from tests.support.snapshots import build
from tests.testcluster.images.small_image import ANSWERING
from tests.testcluster.kubelets import containers
from tests.testcluster.kubelets.rig import Rig

Raw = dict[str, Any]
GPU = "nvidia.com/gpu"
NODE = "node-1"


@pytest.fixture(scope="module")
def node(kubelets: Rig) -> Iterator[str]:
    """A node that advertises a GPU: without a device plugin a kubelet admits pods for what its node's status says."""
    value = kubelets.api.get("v1", "Node", NODE)
    assert value is not None
    kubelets.api.patch(value, {"status": {"capacity": {GPU: "2"}, "allocatable": {GPU: "2"}}}, subresource="status")
    yield NODE
    kubelets.api.patch(value, {"status": {"capacity": {GPU: None}, "allocatable": {GPU: None}}}, subresource="status")


def admitted(name: str, default: Raw) -> Raw:
    """A pod with a GPU, as a policy with this default admits it."""
    catalog = golden.catalog_with()
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": {"mode": "Enforce", "default": default}}
    with_gpu = {"name": "with", "image": ANSWERING, "resources": {"limits": {GPU: "1"}, "requests": {GPU: "1"}}}
    pod: Raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [with_gpu], "nodeSelector": {"kubernetes.io/hostname": NODE}, "terminationGracePeriodSeconds": 1},
    }
    facts = build(golden.policies_of([policy], catalog), catalog, platforms=("gfd",)).facts_for("default")
    request = Request(namespace="default", user="alice", phase="mutate", pod=pod)
    return patched(pod, evaluate(request, facts))


def test_shared_memory_is_as_large_as_the_policy_says(kubelets: Rig, node: str) -> None:
    """The container's /dev/shm is a memory file system of that size, in place of the runtime's 64 MiB."""
    made = kubelets.api.create(admitted("large", {"sharedMemory": "1Gi"}))
    machine = kubelets.nodes[node].machine
    kubelets.cluster.wait_for(lambda: phase(kubelets, "large") == "Running", "the pod to run")
    found = containers.mounts(machine, made["metadata"]["uid"], "with")["/dev/shm"]
    assert found.startswith("tmpfs ")
    assert "size=1048576k" in found.split(",")
    plain = kubelets.api.create(admitted("plain", {}))
    kubelets.cluster.wait_for(lambda: phase(kubelets, "plain") == "Running", "the pod without a policy's default to run")
    assert "size=65536k" in containers.mounts(machine, plain["metadata"]["uid"], "with")["/dev/shm"].split(",")
    for name in ("large", "plain"):
        kubelets.kubectl("delete", "pod", name, "--wait")


def test_a_run_ends_at_the_time_that_it_was_given(kubelets: Rig, node: str) -> None:
    """The kubelet ends the pod and says why, though nothing in it has ended."""
    kubelets.api.create(admitted("ended", {"maxRuntime": "3s"}))
    kubelets.cluster.wait_for(lambda: phase(kubelets, "ended") == "Failed", "the pod to be ended")
    found = kubelets.api.get("v1", "Pod", "ended", "default")
    assert found is not None
    assert found["status"]["reason"] == "DeadlineExceeded"
    kubelets.kubectl("delete", "pod", "ended", "--wait")


def phase(rig: Rig, name: str) -> str:
    return str(((rig.api.get("v1", "Pod", name, "default") or {}).get("status") or {}).get("phase"))
