"""Whether a pod is in a queue that is required, as its queue system will read it.

What an author can write about a pod's queue without its system honouring it counts for nothing: an owner of the
author's own, a group of pods, a gate that nobody but its author lifts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from catalog import Catalog
from kube.pod import DEFAULT_SCHEDULER, NODE_NAME, SCHEDULER, Pod
from kube.tree import Path, maps_in
from policies.pods.permissions import MANAGED
from policies.pods.queue_systems import (
    ANY,
    KAI_SPARK,
    KUEUE,
    KUEUE_GATE,
    KUEUE_PARENT,
    SLURM,
    SPARK,
    VOLCANO,
    VOLCANO_JOB,
    VOLCANO_JOB_QUEUE,
    System,
    value_of,
)
from policies.queues.joining import JoinedQueue, grouping_paths, scheduler_of
from policies.queues.merged_queues import Required

How = Literal[
    "queues differ",
    "node",
    "scheduler",
    "no queue",
    "queue",
    "group",
    "owner",
    "adopted",
    "grown",
    "kueue parent",
    "kueue",
    "kueue queue",
    "job queue",
    "alone",
    "ungated",
    "removed",
]
"""Why a pod is past the queue: a name of a phrase of BERTH-144."""
_LABELLED_LATER = ("apps", "StatefulSet")
"""Owner of pods that Kueue's controllers label after the pods are made: those of StatefulSets, which LeaderWorkerSets make too (kueue
0.19.2 pkg/controller/jobs, statefulset_pod_reconciler.go and leaderworkerset_reconciler.go). The workload is judged itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """How a pod is past the queues that are required."""

    how: How
    system: System
    """The system whose queue it would best be in."""
    path: Path = ()
    value: str = ""
    """What stands there."""


def past(
    pod: Pod, user: str, required: Required, catalog: Catalog, *, pods_in_kueue: bool, joined: JoinedQueue | None = None
) -> Past | None:
    """Return how the pod is past the required queues, or None if it is in one of them.

    ``user``: who makes it; "" where that is its workload's controller, whose name nobody knows beforehand.
    ``pods_in_kueue``: whether Kueue manages pods in this cluster; ``joined``: what a default is about to write.
    """
    if not required.admitted:
        return Past(how="queues differ", system=KUEUE)
    scheduler = joined.system.scheduler if joined is not None else pod.scheduler
    named, made = scheduler_of(scheduler), not user or user in catalog.pod_makers
    first = required.admitted[0][0]
    best = named if named is not None and required.of(named) else first
    if pod.node_name:
        return Past(how="node", system=best, path=NODE_NAME, value=pod.node_name)
    if required.of(KUEUE) and _in_kueue(pod, required, catalog, made=made, pods_in_kueue=pods_in_kueue):
        return None
    if named is not None and required.of(named):
        return _past(pod, named, required, made=made, joined=joined)
    if best is KUEUE:
        return _past_kueue(pod, required, pods_in_kueue=pods_in_kueue)
    return Past(how="scheduler", system=best, path=SCHEDULER, value=scheduler or DEFAULT_SCHEDULER)


def _past_kueue(pod: Pod, required: Required, *, pods_in_kueue: bool) -> Past:
    """Return how a pod that Kueue does not hold back is past its queues."""
    value = value_of(pod, KUEUE)
    how: How = "kueue"
    if isinstance(value, str) and not required.admits(KUEUE, value):
        how = "kueue queue"
    elif not pod.metadata.get("ownerReferences"):
        how = "alone" if not pods_in_kueue else "ungated" if value else "no queue"
    return Past(how=how, system=KUEUE, path=KUEUE.path, value=str(value or ""))


def _past(pod: Pod, system: System, required: Required, *, made: bool, joined: JoinedQueue | None) -> Past | None:
    """Return how a pod of a system's scheduler is past its queues."""
    if required.admits(system, ANY):
        return None
    value = joined.queue if joined is not None and joined.on_pod else value_of(pod, system)
    if made and system is VOLCANO and _kind(pod) == VOLCANO_JOB:  # its controller writes both
        value = pod.annotations.get(VOLCANO_JOB_QUEUE)
        if isinstance(value, str) and not required.admits(system, value):
            return Past(how="job queue", system=system, path=("metadata", "annotations", VOLCANO_JOB_QUEUE), value=value)
    elif there := next((path for path in grouping_paths(pod, system) if not (made and path == KAI_SPARK and _kind(pod) == SPARK)), None):
        return Past(how="group", system=system, path=there)
    if pod.metadata.get("ownerReferences"):
        if not made:
            return Past(how="owner", system=system, path=("metadata", "ownerReferences"))
        if system is SLURM:  # it reads the workload's alone, which is judged itself
            return None
    if value is None:
        return Past(how="no queue", system=system, path=system.path)
    if not isinstance(value, str) or not required.admits(system, value):
        return Past(how="queue", system=system, path=system.path, value=str(value))
    return None


def _in_kueue(pod: Pod, required: Required, catalog: Catalog, *, made: bool, pods_in_kueue: bool) -> bool:
    """Return whether Kueue holds the pod, or the workload that it is of, until a queue admits it.

    A controller makes no pod of a workload that Kueue has suspended; the workload is judged itself. Other pods are held
    by a gate, which only Kueue lifts: it ends a pod of its own that runs without (kueue pkg/controller/jobs/pod).
    """
    if made and _kind(pod) in catalog.held_owners:
        return True
    gated = any(gate.get("name") == KUEUE_GATE for gate in maps_in(pod.spec.get("schedulingGates")))
    if not pods_in_kueue or not gated:
        return False
    queue = value_of(pod, KUEUE)
    later = made and KUEUE_PARENT in pod.annotations and _kind(pod) == _LABELLED_LATER
    right = required.admits(KUEUE, queue) if isinstance(queue, str) and queue else later
    return right and (later or pod.labels.get(MANAGED) == "true")


def _kind(pod: Pod) -> tuple[str, str]:
    """Return (API group, kind) of the pod's controlling owner."""
    return str(pod.owner.get("apiVersion", "")).rpartition("/")[0], str(pod.owner.get("kind", ""))
