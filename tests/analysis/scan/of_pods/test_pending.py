"""Pods that wait: what is in the way on the places that have what they ask for, and which can never run."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.scan import wording
from tests.support.recorded.parts import GPU, TAINT, TOLERATION, node, pod
from tests.support.recorded.scanned import Scanned, scanned

GFD = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "Tesla-T4"}
GKE = {"cloud.google.com/gke-nodepool": "l4", "cloud.google.com/gke-accelerator": "nvidia-l4"}


def pool(name: str, *requirements: Any, **spec: Any) -> dict[str, Any]:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    listed = [{"key": key, "operator": "In", "values": values} for key, values in requirements]
    template = {"nodeClassRef": reference, "requirements": listed, **spec}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": {"template": {"spec": template}}}


def _replica_set(uid: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm", "uid": "d", "controller": True}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": uid, "namespace": "ns", "uid": uid, "ownerReferences": [owner]},
    }


def _of_replica_set(uid: str, value: dict[str, Any]) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": uid, "uid": uid, "controller": True}
    return {**value, "metadata": {**value["metadata"], "ownerReferences": [owner]}}


def _deployment(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "llm", "namespace": "ns"}, "spec": spec}


def only(found: Scanned) -> tuple[str, str]:
    """The kind of the one finding about a pod that waits, and its fact."""
    (one,) = (*found.of("pending"), *found.of("never-fits"))
    return one.kind, wording.fact(one)


FAMILY = "karpenter.k8s.aws/instance-family"
WAITS = [
    (
        [node("n", GFD, {GPU: 2}, TAINT)],
        pod("p", "ns", {GPU: 1}),
        "never-fits",
        "nodes with T4 (1 node): taint nvidia.com/gpu=present:NoSchedule is not tolerated",
    ),
    (
        [node("n", GFD, {GPU: 2}), pod("other", "ns", {GPU: 2}, on="n")],
        pod("p", "ns", {GPU: 1}),
        "pending",
        "nodes with T4 (1 node): requests 1 nvidia.com/gpu, at most 0 free",
    ),
    (
        [node("n", GFD, {GPU: 2})],
        pod("p", "ns", {GPU: 3}),
        "never-fits",
        "nodes with T4 (1 node): requests 3 nvidia.com/gpu, a node has at most 2",
    ),
    ([node("n", GFD, {GPU: 2})], pod("p", "ns", {"amd.com/gpu": 1}), "never-fits", "no node has amd.com/gpu"),
    (
        [node("n", GFD, {GPU: 2})],
        pod("p", "ns", {GPU: 1}, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-L4"}),
        "never-fits",
        "nodes with T4 (1 node): label nvidia.com/gpu.product (Tesla-T4) is not NVIDIA-L4",
    ),
    (
        [node("n", GKE, {GPU: 1}, TAINT)],
        pod("p", "ns", {GPU: 1}),
        "pending",
        "node pool l4 (1 node): taint nvidia.com/gpu=present:NoSchedule is not tolerated",
    ),
    (
        [pool("gpu", (FAMILY, ["g6"]))],
        pod("p", "ns", {GPU: 16}),
        "never-fits",
        "new nodes of NodePool gpu: cannot create a node with 16 nvidia.com/gpu (at most 8, g6.48xlarge)",
    ),
    (
        [pool("gpu", (FAMILY, ["g6"]), taints=[TAINT]), pool("web", (FAMILY, ["m6i"]))],
        pod("p", "ns", {GPU: 1}),
        "never-fits",
        "new nodes of NodePool gpu: taint nvidia.com/gpu=present:NoSchedule is not tolerated",
    ),
    (
        [pool("gpu", (FAMILY, ["g6"]))],
        pod("p", "ns", {GPU: 1}, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-L4"}),
        "never-fits",
        "new nodes of NodePool gpu: label nvidia.com/gpu.product is unknown before a node exists, required: NVIDIA-L4",
    ),
    ([], pod("p", "ns", {GPU: 1}), "never-fits", "no node has nvidia.com/gpu"),
    (
        [node("n", GFD, {GPU: 2})],
        pod("p", "ns", {GPU: 1}, schedulerName="volcano"),
        "pending",
        "nodes with T4 (1 node): no blocker found",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("objects", "waiting", "kind", "fact"), WAITS, ids=[fact for _, _, _, fact in WAITS])
def test_what_is_in_the_way_is_said_of_the_places_that_have_the_device(
    objects: list[dict[str, Any]], waiting: dict[str, Any], kind: str, fact: str
) -> None:
    """And it is called impossible only where nothing that can't be seen makes nodes, and its scheduler's rules are known."""
    assert only(scanned([*objects, waiting])) == (kind, fact)


def test_a_pod_whose_only_lack_is_a_toleration_would_have_been_mended() -> None:
    """By berth-default; one that is too large for any node would not, and one that waits for others to end needs no mending."""
    small, large = pod("p", "ns", {GPU: 1}), pod("p", "ns", {GPU: 3})
    tainted = node("n", GFD, {GPU: 2}, TAINT)
    busy = [node("n", GFD, {GPU: 2}), pod("other", "ns", {GPU: 2}, on="n")]
    assert [scanned([tainted, one]).of("never-fits")[0].fixed for one in (small, large)] == [1, 0]
    assert scanned([*busy, small]).of("pending")[0].fixed is None


def test_what_the_scheduler_judges_besides_is_named() -> None:
    """A gate that a queue holds is no lack of the cluster."""
    gated = pod("p", "ns", {GPU: 1}, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}], tolerations=[TOLERATION])
    kind, fact = only(scanned([node("n", GFD, {GPU: 2}), gated]))
    assert (kind, fact.partition("; ")[2]) == ("pending", "not checked here: scheduling gates")


def test_a_rolling_update_that_waits_for_its_own_old_pod() -> None:
    """A Deployment that may miss no pod keeps the old one until the new one is ready, which needs its GPU."""
    old, new = _of_replica_set("old", pod("a", "ns", {GPU: 2}, on="n")), _of_replica_set("new", pod("b", "ns", {GPU: 2}))
    sets = [_replica_set("old"), _replica_set("new"), node("n", GFD, {GPU: 2}), old, new]
    (finding,) = scanned([*sets, _deployment(replicas=1)]).of("rollout-waits")
    assert finding.where == ("Deployment", "ns", "llm")
    assert finding.values == {"deployment": "llm", "surge": 1, "old": 1, "resource": GPU}
    assert "and its old pods (1) hold the nvidia.com/gpu that is missing" in wording.fact(finding)
    others = [
        (_deployment(replicas=4), *sets),
        (_deployment(strategy={"type": "Recreate"}), *sets),
        (_deployment(replicas=1), *sets[:3], _of_replica_set("new", pod("a", "ns", {GPU: 2}, on="n")), new),
        (_deployment(replicas=1), *sets[:3], pod("a", "other", {GPU: 2}, on="n"), new),
    ]
    for objects in others:
        assert not scanned([*objects]).of("rollout-waits")
        assert scanned([*objects]).of("pending")


def test_without_nodes_nothing_is_said_to_be_missing() -> None:
    """Nodes that were not read may have what the pod asks for."""
    report = scanned([pod("p", "ns", {GPU: 1})], unread={"Node": "you may not list nodes"}).report
    (finding,) = report.findings
    assert (finding.kind, finding.values["reasons"], finding.values["unjudged"]) == ("pending", (), ("nodes",))


def test_there_is_room_for_some_pods_of_a_workload() -> None:
    """Each of them fits alone; the finding says for how many there is room together."""
    owner = ("batch/v1", "Job", "train")
    nodes = [node(f"n{at}", {}, {GPU: 8}, TAINT) for at in range(2)]
    waiting = [pod(f"train-{at}", "ns", {GPU: 8}, owner=owner, tolerations=[TOLERATION]) for at in range(4)]
    (finding,) = scanned([*nodes, *waiting]).of("pending")
    assert (finding.pods, finding.gpus, finding.values["room"]) == (4, 32, 2)
    assert wording.fact(finding).endswith("there is room for 2 of these 4 pods now")
