"""How a pod of each row of the actor table (``policies/pods/actors.py``) comes to be: by a real controller where there is one.

Operators that are no part of Kubernetes are played: their custom resource is a real one, of a small definition, and the pod is
made as theirs would be. Another kube-scheduler binds in the name of the queue systems that bring a scheduler of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from tests.e2e.judged import Judged
from tests.e2e.workloads import TOLERATION, affinity, created, expression, pod, pod_of, workload
from tests.testcluster import programs
from tests.testcluster.controlplane.api import JSON_PATCH, Api, Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import free_port
from tests.testcluster.controlplane.starting import HOST, http_ok

FOREIGN = ("kai-scheduler", "runai-scheduler", "volcano", "slurm-bridge-scheduler")
PYTORCH = ("kubeflow.org", "v1", "PyTorchJob")
CLAIM = "two-gpus"
GROUP = {"kueue.x-k8s.io/pod-group-name": "group", "kueue.x-k8s.io/queue-name": "queue", "kueue.x-k8s.io/managed": "true"}
PODSET = {"kueue.x-k8s.io/podset": "main"}
MIRROR = {"kubernetes.io/config.mirror": "0a1b2c"}
A10G = {"nvidia.com/gpu.product": "NVIDIA-A10G"}
GATE = {"name": "kueue.x-k8s.io/admission"}
Made = Callable[[Judged, str], Raw]
"""Makes a pod in a namespace; what is returned is stored."""


def bare(resources: Raw | None = None, metadata: Raw | None = None, **spec: Any) -> Made:
    """Created by its author, or by an operator."""
    return lambda world, namespace: world.cluster.api.create(pod(resources, metadata, **spec), namespace)


def of(kind: str, made: Raw | None = None, **spec: Any) -> Made:
    """Created by the controller of a workload of this kind."""
    return lambda world, namespace: created(world.cluster, namespace, kind, made or pod(), **spec)


def of_a_cron_job(world: Judged, namespace: str) -> Raw:
    """Created by the Job that the CronJob's controller makes; it finds that it has missed two minutes, and need not wait for the next."""
    api = world.cluster.api
    stored = api.create(workload("CronJob", pod()), namespace)
    missed = datetime.now(UTC) - timedelta(minutes=2)
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": stored["metadata"]}
    api.patch(cron, {"status": {"lastScheduleTime": missed.strftime("%Y-%m-%dT%H:%M:%SZ")}}, subresource="status")
    return pod_of(world.cluster, namespace)


def of_an_operator(world: Judged, namespace: str) -> Raw:
    """A PyTorchJob's pod; any other custom owner's would be the same."""
    return world.cluster.api.create(pod(metadata=owned(pytorch_job(world, namespace))), namespace)


def of_an_admitted_job(world: Judged, namespace: str) -> Raw:
    """A Job's whose template has the label that Kueue writes when it lets the Job start."""
    return created(world.cluster, namespace, "Job", pod(metadata={"labels": PODSET}))


def of_a_pod_group(world: Judged, namespace: str) -> Raw:
    """Held by Kueue's gate; then let go with the node labels of a flavor, as Kueue does it."""
    api = world.cluster.api
    held = api.create(pod(metadata={"labels": GROUP}, schedulingGates=[GATE]), namespace)
    let_go = [{"op": "remove", "path": "/spec/schedulingGates/0"}, {"op": "add", "path": "/spec/nodeSelector", "value": A10G}]
    return api.patch({"apiVersion": "v1", "kind": "Pod", **held}, let_go, content=JSON_PATCH)


def of_a_node(world: Judged, namespace: str) -> Raw:
    """Owned by the node that it runs on, and no mirror."""
    node = world.cluster.api.get("v1", "Node", "a10g")
    assert node is not None
    owner = {"apiVersion": "v1", "kind": "Node", **node}
    return world.cluster.api.create(pod(metadata=owned(owner), nodeName="a10g"), namespace)


def as_a_kubelet(cluster: Cluster) -> Api:
    """Calls as a node's kubelet would, by whom a mirror pod is known; it may create pods, as the node authorizer lets kubelets."""
    user = "system:node:a10g"
    cluster.api.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "a-kubelet"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }
    )
    kubelet = cluster.api.acting_as(user, "system:nodes")
    cluster.wait_for(lambda: _may_create_pods(kubelet), "the kubelet's binding to be in force")
    return kubelet


def _may_create_pods(api: Api) -> bool:
    """By the API server's own word: its authorizer hears of a binding a moment after it is stored."""
    asked: Raw = {"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}}
    reply = api.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", **asked})
    return bool(reply.ok and reply.body["status"]["allowed"])


def mirrored(made: Raw) -> Made:
    """A mirror pod: the kubelet's own."""
    return lambda world, namespace: as_a_kubelet(world.cluster).create(made, namespace)


def of_a_daemon_set(node: str) -> Made:
    """On one node. Its template tolerates the GPU's taint: the DaemonSet's controller makes no pod for a node that it does not tolerate."""
    return of("DaemonSet", pod(nodeSelector={"kubernetes.io/hostname": node}, tolerations=[TOLERATION]))


def pinned(node: str) -> Raw:
    """``spec.affinity`` as DaemonSet pods have it."""
    return affinity({"matchFields": [expression("metadata.name", node)]})


def claiming() -> Raw:
    """Asks for GPUs by resource claim alone: ``spec`` of a pod without its containers, and their resources."""
    return {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": CLAIM}]}


CLAIMED: Raw = {"claims": [{"name": "gpu"}]}


def owned(owner: Raw) -> Raw:
    """``metadata`` of a pod that this stored object controls."""
    named = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return {"ownerReferences": [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], **named, "controller": True}]}


def pytorch_job(world: Judged, namespace: str) -> Raw:
    """A new one; nobody acts on it."""
    group, version, kind = PYTORCH
    return world.cluster.api.create(
        {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"generateName": "train-"}, "spec": {}}, namespace
    )


@contextmanager
def pytorch_jobs(cluster: Cluster) -> Iterator[None]:
    """The API server knows PyTorchJobs."""
    group, version, kind = PYTORCH
    names = {"plural": "pytorchjobs", "singular": "pytorchjob", "kind": kind, "listKind": f"{kind}List"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"pytorchjobs.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }
    cluster.api.create(definition)
    try:
        cluster.wait_for(lambda: _served(cluster, f"{group}/{version}", kind), "PyTorchJobs to be served")
        yield
    finally:
        cluster.api.delete(definition)


def _served(cluster: Cluster, api_version: str, kind: str) -> bool:
    try:
        return cluster.api.call("GET", cluster.api.kind(api_version, kind).path(None)).ok
    except LookupError:
        return False


@contextmanager
def devices(cluster: Cluster) -> Iterator[None]:
    """Two GPUs of the node a10g by DRA: what its driver would publish, and the class that an administrator writes."""
    api_version = "resource.k8s.io/v1"
    attributes = {key: {"string": value} for key, value in (("productName", "NVIDIA A10G"), ("architecture", "Ampere"), ("type", "gpu"))}
    published = {
        "driver": "gpu.nvidia.com",
        "nodeName": "a10g",
        "pool": {"name": "a10g", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name, "attributes": attributes} for name in ("gpu-0", "gpu-1")],
    }
    selectors = [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]
    found = (
        {"apiVersion": api_version, "kind": "ResourceSlice", "metadata": {"name": "a10g-gpus"}, "spec": published},
        {"apiVersion": api_version, "kind": "DeviceClass", "metadata": {"name": "big-gpu"}, "spec": {"selectors": selectors}},
    )
    for value in found:
        cluster.api.create(value)
    try:
        yield
    finally:
        for value in found:
            cluster.api.delete(value)


def claim_template() -> Raw:
    """Of two GPUs, for each pod that names it."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "big-gpu", "count": 2}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": CLAIM},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


@contextmanager
def foreign_scheduler(cluster: Cluster) -> Iterator[None]:
    """A kube-scheduler that binds pods in the name of each queue system's."""
    file, port = cluster.folder / "foreign-scheduler.yaml", free_port()
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(cluster.kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": name} for name in FOREIGN],
    }
    file.write_text(yaml.safe_dump(configuration))
    files = [f"--{flag}={cluster.kubeconfig}" for flag in ("authentication-kubeconfig", "authorization-kubeconfig")]
    where = [f"--bind-address={HOST}", f"--secure-port={port}", f"--cert-dir={cluster.folder / 'foreign-scheduler'}"]
    process = cluster.processes.start("foreign-scheduler", [str(programs.path("kube-scheduler")), f"--config={file}", *files, *where])
    try:
        cluster.wait_for(lambda: http_ok(f"https://{HOST}:{port}/healthz"), "another kube-scheduler")
        yield
    finally:
        cluster.processes.end(process)
