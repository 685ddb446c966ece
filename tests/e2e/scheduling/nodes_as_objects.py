"""A scheduler whose nodes are objects alone, and pods that it has decided on."""

from __future__ import annotations

from tests.support.scheduling import random_places
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster, Options

NAMESPACE = "default"
OPTIONS = Options(kubelets=False, controllers="namespace-controller")
"""No controller that taints or removes nodes without a kubelet."""


def decided(cluster: Cluster, name: str) -> Raw | None:
    """The pod once it is bound, or the scheduler has said why it is not."""
    value = cluster.api.get("v1", "Pod", name, NAMESPACE)
    assert value is not None
    conditions = value.get("status", {}).get("conditions", ())
    waits = any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)
    return value if value["spec"].get("nodeName") or waits else None


def made(cluster: Cluster, value: Raw) -> Raw:
    """A node as stored, without the taint that admission adds to each new one."""
    cluster.api.create(value)
    cluster.api.patch(value, {"status": value["status"]}, subresource="status")
    taints = value["spec"]["taints"]
    return {**cluster.api.patch(value, {"spec": {"taints": taints or None}}), "kind": "Node"}


def cordoned(objects: list[Raw], name: str) -> bool:
    return any(one["spec"].get("unschedulable") for one in objects if one["metadata"]["name"] == name)


def sentinel(cluster: Cluster, node: str) -> Raw:
    """A pod that is bound once the scheduler has seen the node as it is."""
    tolerated = [{"key": taint["key"], "operator": "Exists"} for taint in random_places.TAINTS]
    spec = {
        "containers": [{"name": "c", "image": "i:1"}],
        "nodeSelector": {"kubernetes.io/hostname": node},
        "tolerations": tolerated,
    }
    value = cluster.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"seen-{node}"}, "spec": spec}, NAMESPACE)
    return cluster.wait_for(lambda: _bound(cluster, value["metadata"]["name"]), "the scheduler to see the node")


def _bound(cluster: Cluster, name: str) -> Raw | None:
    value = decided(cluster, name)
    return value if value is not None and value["spec"].get("nodeName") else None


def cleared(cluster: Cluster, objects: list[Raw]) -> None:
    """All pods go, and these nodes."""
    cluster.api.delete_all("v1", "Pod", NAMESPACE)
    cluster.wait_for(lambda: not cluster.api.list("v1", "Pod", NAMESPACE), "pods to go")
    for one in objects:
        cluster.api.delete(one)
