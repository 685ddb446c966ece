"""Build the pod of a workload that has a queue, as the queue system's own webhooks and controllers leave it.

Sources: kueue 0.19.2 pkg/podset (the label of the pods of a workload that was suspended), and under
pkg/controller/jobs the webhooks of deployment, statefulset and leaderworkerset (annotation and label of the template)
and of pod (the gate, and the label of a pod without such a workload); volcano pkg/webhooks/admission/jobs/mutate (the
defaults of a job) and pkg/controllers/job (what its pods are given).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from catalog import Workload
from kube.tree import Raw, map_at, maps_in
from policies.pods.actors import MANAGED, QUEUE_NAME
from policies.pods.queue_systems import KUEUE, KUEUE_GATE, KUEUE_PARENT, VOLCANO, VOLCANO_JOB_QUEUE

_PODSET = "kueue.x-k8s.io/podset"
_VOLCANO_GROUP = "scheduling.k8s.io/group-name"
_VOLCANO_DEFAULT = "default"
"""The queue of a job of Volcano's that names none."""


def in_kueue(pod: Raw, workload: Workload, queue: str) -> Raw:
    """Return the pod of a workload of this kind that is in ``queue``; ``pod`` is not changed.

    A kind that Kueue does not suspend has its pods gated. Whether Kueue manages pods at all is for the caller to know:
    the gate of a pod counts only where it does. The pods of a StatefulSet, and of a LeaderWorkerSet, are marked by Kueue's
    controllers a moment later.
    """
    if workload.kueue != "gates":
        return _with(pod, labels={_PODSET: "main"})
    parent = workload.name.lower()
    if workload.name == "StatefulSet" and map_at(pod, "metadata", "annotations").get(KUEUE_PARENT, parent) != parent:
        return pod  # of another parent, Kueue says, and leaves it alone (managedByAnotherFramework)
    at_once = {MANAGED: "true"} if workload.name == "Deployment" else {}
    return _gated(_with(pod, labels={QUEUE_NAME: queue, **at_once}, annotations={KUEUE_PARENT: parent}))


def alone_in_kueue(pod: Raw, queues: Container[str]) -> Raw:
    """Return a pod that names a queue of Kueue's and is of no workload in one, held as Kueue's webhook holds it.

    ``queues``: the queue systems in use; without Kueue among them it does not manage pods.
    """
    labels, annotations = map_at(pod, "metadata", "labels"), map_at(pod, "metadata", "annotations")
    if KUEUE.name not in queues or not labels.get(QUEUE_NAME) or _PODSET in labels or KUEUE_PARENT in annotations:
        return pod
    return _gated(_with(pod, labels={MANAGED: "true"}))


def in_volcano(pod: Raw, job: Mapping[str, Any], template: Mapping[str, Any]) -> Raw:
    """Return the pod that Volcano's controller makes from a template of a job of its own: with the job's queue and scheduler."""
    queue, scheduler = map_at(job, "spec").get("queue"), map_at(job, "spec").get("schedulerName")
    name = map_at(job, "metadata").get("name")
    made = _with(pod, annotations={VOLCANO_JOB_QUEUE: str(queue or _VOLCANO_DEFAULT), _VOLCANO_GROUP: str(name or VOLCANO.name)})
    if not map_at(template, "spec").get("schedulerName") and isinstance(scheduler, str) and scheduler:
        made["spec"] = {**made["spec"], "schedulerName": scheduler}
    return made


def _with(pod: Raw, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None) -> Raw:
    metadata = dict(map_at(pod, "metadata"))
    for key, added in (("labels", labels), ("annotations", annotations)):
        if added:
            metadata[key] = {**map_at(metadata, key), **added}
    return {**pod, "metadata": metadata}


def _gated(pod: Raw) -> Raw:
    spec = map_at(pod, "spec")
    gates = [*maps_in(spec.get("schedulingGates"))]
    if any(gate.get("name") == KUEUE_GATE for gate in gates):
        return pod
    return {**pod, "spec": {**spec, "schedulingGates": [*gates, {"name": KUEUE_GATE}]}}
