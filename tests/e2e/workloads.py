"""Pods and workloads that ask for GPUs, as authors write them, and what became of them: stored, bound to a node, or waiting.

kwok plays the kubelets: that a node runs what kube-scheduler binds is taken for granted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

NVIDIA = "nvidia.com/gpu"
TOLERATION: Raw = {"key": NVIDIA, "operator": "Exists", "effect": "NoSchedule"}
"""The one of GPU nodes, as an author who knows it writes it."""
APP = "app"
"""Label of a workload's pods: its name."""
APPLIED = "berth.dev/applied"
KINDS = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "ReplicationController": "v1",
}
_EVERY_NODE = "node.kubernetes.io/"
"""Tolerations that the API server's DefaultTolerationSeconds and the DaemonSet controller give to all pods."""


def gpus(amount: int = 1, name: str = NVIDIA) -> Raw:
    """``resources`` of a container, by limit alone, as most manifests have it."""
    return {"limits": {name: str(amount)}}


def pod(resources: Raw | None = None, metadata: Raw | None = None, **spec: Any) -> Raw:
    """One container, of one GPU unless ``resources`` says otherwise; named by the API server."""
    container = {"name": "main", "image": "registry.example/main:1", "resources": gpus() if resources is None else resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "p-", **(metadata or {})},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def workload(kind: str, made: Raw, name: str = "work", **spec: Any) -> Raw:
    """A workload of Kubernetes' own kinds whose one pod is like ``made``, a pod's manifest; its pods have the label APP=``name``."""
    metadata = {**made["metadata"], "labels": {**made["metadata"].get("labels", {}), APP: name}}
    metadata.pop("generateName", None)
    runs = "Never" if kind in ("Job", "CronJob") else "Always"
    template = {"metadata": metadata, "spec": {**made["spec"], "restartPolicy": runs}}
    return {
        "apiVersion": KINDS[kind],
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**_around(kind, template, name), **spec},
    }


def _around(kind: str, template: Raw, name: str) -> Raw:
    """What such a workload needs beside its template."""
    if kind == "Job":
        return {"backoffLimit": 0, "template": template}
    if kind == "CronJob":
        return {"schedule": "* * * * *", "jobTemplate": {"spec": {"backoffLimit": 0, "template": template}}}
    if kind == "ReplicationController":
        return {"selector": {APP: name}, "template": template}
    return {"selector": {"matchLabels": {APP: name}}, "template": template}


def pod_of(cluster: Cluster, namespace: str, name: str = "work") -> Raw:
    """The first pod that a workload's controller made, as it is stored."""

    def made() -> list[Raw]:
        return cluster.api.list("v1", "Pod", namespace, labelSelector=f"{APP}={name}")

    first, *_ = cluster.wait_for(made, f"a pod of {name} in {namespace}")
    return {"apiVersion": "v1", "kind": "Pod", **first}


def created(cluster: Cluster, namespace: str, kind: str, made: Raw, **spec: Any) -> Raw:
    """The pod that the controller of a new workload makes, as it is stored. The workload is called ``work``."""
    cluster.api.create(workload(kind, made, **spec), namespace)
    return pod_of(cluster, namespace)


def node_of(cluster: Cluster, stored: Raw) -> str:
    """The node that kube-scheduler binds it to."""
    return str(cluster.wait_for(lambda: _now(cluster, stored)["spec"].get("nodeName"), f"pod {_named(stored)} to be bound"))


def waiting(cluster: Cluster, stored: Raw) -> str:
    """Why kube-scheduler finds no node for it."""
    return cluster.wait_for(lambda: _unschedulable(_now(cluster, stored)), f"pod {_named(stored)} to be found unschedulable")


def _now(cluster: Cluster, stored: Raw) -> Raw:
    metadata = stored["metadata"]
    found = cluster.api.get("v1", "Pod", metadata["name"], metadata["namespace"])
    assert found is not None, f"pod {_named(stored)} is gone"
    return found


def _unschedulable(found: Raw) -> str | None:
    conditions = found["status"].get("conditions", ())
    return next((str(one["message"]) for one in conditions if one.get("reason") == "Unschedulable"), None)


def _named(stored: Raw) -> str:
    return f"{stored['metadata']['namespace']}/{stored['metadata']['name']}"


def tolerations(stored: Raw) -> list[Raw]:
    """Without those that every pod gets from Kubernetes itself."""
    return [one for one in stored["spec"].get("tolerations", ()) if not str(one.get("key")).startswith(_EVERY_NODE)]


def terms(stored: Raw) -> list[Raw]:
    """Its required node affinity terms; none where it has no such affinity."""
    affinity = stored["spec"].get("affinity", {}).get("nodeAffinity", {})
    found: list[Raw] = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    return found


def affinity(*required: Raw, preferred: Mapping[str, str] | None = None) -> Raw:
    """``spec.affinity`` with required terms, and a preference of full weight for nodes with these labels."""
    node: Raw = {}
    if required:
        node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": list(required)}
    if preferred:
        wanted = [expression(key, value) for key, value in preferred.items()]
        node["preferredDuringSchedulingIgnoredDuringExecution"] = [{"weight": 100, "preference": {"matchExpressions": wanted}}]
    return {"nodeAffinity": node}


def expression(key: str, *values: str, operator: str = "In") -> Raw:
    """Of a node selector term."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def amounts(stored: Raw) -> tuple[Raw, Raw]:
    """(requests, limits) of its first container."""
    resources = stored["spec"]["containers"][0]["resources"]
    return resources.get("requests", {}), resources.get("limits", {})


def clear(cluster: Cluster, namespaces: Iterable[str], kinds: Iterable[str]) -> None:
    """Every workload of these kinds there, then every pod, at once."""
    kinds = (*(kind for kind in kinds if kind != "Pod"), "Pod")
    for namespace in namespaces:
        for kind in kinds:
            cluster.api.delete_all(KINDS.get(kind, "v1"), kind, namespace)
