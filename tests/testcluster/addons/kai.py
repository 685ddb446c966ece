"""KAI beside a cluster: its scheduler, podgrouper and binder, from the sources that ``tests.testcluster.thirdparty`` builds.

    start(cluster)
    queue(cluster.api, "team-a", gpus=8)

Pods that name ``kai-scheduler`` are grouped by the podgrouper, placed by the scheduler within the quota of their queue, and bound by the
binder. Parts of a GPU need KAI's admission webhook besides (``tests.e2e.queues.kai_admission``), and reservation pods (``reserve``): of
each shared GPU the binder makes one, whose program says which GPU its device plugin gave it. That program needs a GPU: its word is played.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tests.testcluster import thirdparty
from tests.testcluster.controlplane.api import Api, Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import Process, free_port
from tests.testcluster.controlplane.starting import HOST, apply_crds, http_ok

RESERVATION = "kai-resource-reservation"
NAMESPACES = ("kai-scheduler", RESERVATION)
RESERVED = "run.ai/reserve_for_gpu_index"
"""Annotation of a reservation pod: its GPU's UUID, written by its own program (cmd/resourcereservation)."""
GROUP = "runai-gpu-group"
"""Label of a reservation pod, and of those that share its GPU."""
SCHEDULER = "kai-scheduler"
QUEUE = "kai.scheduler/queue"
VERSION = "scheduling.run.ai/v2"
PRIORITIES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
"""deployments/kai-scheduler/templates/priorityclasses"""
PERIOD = "200ms"
"""between two rounds of the scheduler, which is a second by default"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kai:
    """One that runs."""

    scheduler: Process
    podgrouper: Process
    binder: Process


def start(cluster: Cluster) -> Kai:
    """KAI, ready. It ends with the cluster. Raises NoGo, BuildFailed, ClusterFailed."""
    crds = thirdparty.files(thirdparty.KAI, "deployments/kai-scheduler/crds")
    apply_crds(cluster.api, sorted(crds.glob("*.yaml")), cluster.processes)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": RESERVATION, "namespace": RESERVATION}}
    namespaces = ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES)
    for value in (*namespaces, account, *_priorities()):
        reply = cluster.api.apply(value)
        assert reply.ok, reply.message
    at = [f"{HOST}:{free_port()}" for _ in range(3)]
    probes = "--health-probe-bind-address="
    scheduler = ("--listen-address", at[0], "--plugin-server-port", str(free_port()), "--schedule-period", PERIOD)
    started = Kai(
        scheduler=_started(cluster, "scheduler", *scheduler),
        podgrouper=_started(cluster, "podgrouper", "--metrics-bind-address=0", f"{probes}{at[1]}"),
        binder=_started(cluster, "binder", "--metrics-bind-address=0", f"{probes}{at[2]}"),
    )
    cluster.wait_for(lambda: http_ok(f"http://{at[0]}/metrics"), f"KAI's scheduler to answer; its log is {started.scheduler.log}")
    grouping = f"KAI's podgrouper to be ready; its log is {started.podgrouper.log}"
    cluster.wait_for(lambda: http_ok(f"http://{at[1]}/readyz"), grouping)  # the binder has no such check: what it does is waited for
    return started


def _started(cluster: Cluster, name: str, *options: str) -> Process:
    program = thirdparty.program(thirdparty.KAI, name)
    return cluster.processes.start(f"kai-{name}", [str(program), *options], {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)})


def _priorities() -> list[Raw]:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return [{**kind, "metadata": {"name": name}, "value": value} for name, value in PRIORITIES.items()]


def reserve(api: Api) -> list[Raw]:
    """The reservation pods there are, each with the GPU that its program finds: one of its own."""
    found = api.list("v1", "Pod", RESERVATION)
    for one in found:
        annotations = one["metadata"].setdefault("annotations", {})
        if RESERVED not in annotations:
            annotations[RESERVED] = f"GPU-{one['metadata']['uid']}"
            api.patch({**one, "apiVersion": "v1", "kind": "Pod"}, {"metadata": {"annotations": annotations}})
    return found


def queue(api: Api, name: str, gpus: int) -> None:
    """A queue with this quota, which it may not exceed, below a parent of its own."""
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    whole = {"cpu": free, "memory": free, "gpu": free}
    own = {**whole, "gpu": {"quota": gpus, "limit": gpus, "overQuotaWeight": 1}}
    for value in (
        {"apiVersion": VERSION, "kind": "Queue", "metadata": {"name": f"{name}-parent"}, "spec": {"resources": whole}},
        {
            "apiVersion": VERSION,
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"parentQueue": f"{name}-parent", "resources": own},
        },
    ):
        reply = api.apply(value)
        assert reply.ok, reply.message


def queue_of(api: Api, pod: Raw) -> str:
    """The queue of the group that KAI has put a pod in. The group is there."""
    metadata = pod["metadata"]
    group = api.get("scheduling.run.ai/v2alpha2", "PodGroup", metadata["annotations"]["pod-group-name"], metadata["namespace"])
    assert group is not None
    queue: str = group["spec"]["queue"]
    return queue
