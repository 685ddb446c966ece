"""Queue systems: which queue ``default.queue`` gives a pod, what is required of the queue in which it waits, and whether it is in one, as
its queue system will read it. Nothing here edits anything: ``policies.rules.queues`` does, and ``webhook.admission`` for workloads.

Of a default the first scope that speaks decides, as of names (``policies.offers.merging``); it never moves a pod of which anybody has
chosen the node, a scheduler or a queue. What several policies require is what all of them admit. What an author can write about a pod's
queue without its system honouring it counts for nothing: an owner of the author's own, a group of pods, a gate that nobody but its
author lifts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from catalog import Catalog
from kube.pod import DEFAULT_SCHEDULER, NODE_NAME, SCHEDULER, Pod
from kube.tree import Path, maps_in
from policies.offers.constraints import Compiled
from policies.offers.merging import NamedValue, by_scope, merge_named
from policies.pods.actors import KUEUE_LABELS, MANAGED, Actor
from policies.pods.queue_systems import (
    ANY,
    BY_NAME,
    KAI_SPARK,
    KUEUE,
    KUEUE_GATE,
    KUEUE_PARENT,
    SLURM,
    SPARK,
    SYSTEMS,
    VOLCANO,
    VOLCANO_JOB,
    VOLCANO_JOB_QUEUE,
    System,
    admitted,
    given_queue,
    value_of,
)
from policies.policy import QueueName, Queues

Admitted = tuple[tuple[System, str], ...]
"""Systems with a queue of each, or ``*``, in the order of ``SYSTEMS``, then by name."""


@dataclass(frozen=True, slots=True)
class Required:
    """What ``require.queue`` of several policies admits together."""

    admitted: Admitted
    """Empty: they contradict each other."""
    policies: tuple[str, ...]

    def of(self, system: System) -> tuple[str, ...]:
        """Return the queues of one system that are admitted."""
        return tuple(name for one, name in self.admitted if one is system)

    def admits(self, system: System, name: str) -> bool:
        """Return whether a pod may be in this queue."""
        return not {ANY, name}.isdisjoint(self.of(system))


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedQueues:
    default: NamedValue[QueueName] | None
    required: Required | None


def merge_queues(policies: Sequence[Compiled], matches: Sequence[Compiled]) -> MergedQueues:
    """Merge the settings of these policies. ``matches``: those whose defaults act."""
    scopes = by_scope(matches)
    demands = [(queues, c.id) for c in policies if (queues := c.policy.require.queue) is not None]
    return MergedQueues(
        default=merge_named(scopes, lambda default: default.queue),
        required=Required(common(queues for queues, _ in demands), tuple(who for _, who in demands)) if demands else None,
    )


def common(demands: Iterable[Queues]) -> Admitted:
    """Return what all of these admit."""
    first, *others = (dict.fromkeys(admitted(queues)) for queues in demands)
    left = set(first)
    for other in others:
        both = left & set(other)
        left = both | {one for one in left if (one[0], ANY) in other} | {one for one in other if (one[0], ANY) in left}
    return tuple(sorted(left, key=lambda one: (SYSTEMS.index(one[0]), one[1])))


# --- the queue that a default gives -----------------------------------------------------------------------------------

Why = Literal["queue not required", "queue and claims"]
"""Why a default does not act: a name of a phrase of BERTH-227."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultQueue:
    """The queue that a default gives a pod, or a workload."""

    system: System
    queue: str
    policies: tuple[str, ...]
    why: Why | None = None
    """Why the default does not act; None if it does."""
    moves: bool = False
    """True if it acts and the pod names no scheduler yet; else the pod names the system's, and lacks a queue alone."""
    on_pod: bool = True
    """False if the system reads the queue of such a pod from the workload that owns it."""


def default_queue(pod: Pod, system: System, queue: str, policies: tuple[str, ...], required: Required | None) -> DefaultQueue:
    """Return the queue that policies give to a pod or its workload, and whether the default acts."""
    why: Why | None = None
    if required is not None and not required.admits(system, queue):
        why = "queue not required"
    elif system is SLURM and pod.claims:  # its webhook denies such pods (slurm-bridge internal/admission)
        why = "queue and claims"
    return DefaultQueue(system=system, queue=queue, policies=policies, why=why)


def joining(pod: Pod, actor: Actor, queues: MergedQueues) -> DefaultQueue | None:
    """Return the queue that this pod gets; None if the default is silent, of Kueue's, or the pod's author is not silent."""
    default = queues.default
    if default is None or default.value is None or not silent(pod, actor):
        return None
    system, queue = given_queue(default.value)
    moves = _moves(pod, actor)
    if system is KUEUE or (not moves and pod.scheduler != system.scheduler):
        return None
    joined = default_queue(pod, system, queue, default.policies, queues.required)
    if joined.why is not None:
        return joined
    return replace(joined, moves=moves, on_pod=system is not SLURM or not pod.metadata.get("ownerReferences"))


def silent(pod: Pod, actor: Actor) -> bool:
    """Return whether nobody has chosen the pod's queue, so that a default may."""
    return _moves(pod, actor) or _stays(pod, actor)


def _moves(pod: Pod, actor: Actor) -> bool:
    """Return whether a default may name the pod's scheduler."""
    return actor.moves and pod.scheduler in ("", DEFAULT_SCHEDULER) and not _in_a_queue(pod)


def _stays(pod: Pod, actor: Actor) -> bool:
    """Return whether the pod names a queue system's scheduler and no queue, and may be given one."""
    there = any(pod.scheduler == system.scheduler for system in SYSTEMS if system.scheduler)
    return there and actor.fills and not pod.node_name and not _in_a_queue(pod)


def _in_a_queue(pod: Pod) -> bool:
    """Return whether the pod names a queue of any system, or a group of pods that somebody has made."""
    if any(key in pod.labels for key in KUEUE_LABELS):
        return True
    return any(value_of(pod, system) is not None or any(grouping_paths(pod, system)) for system in SYSTEMS)


def grouping_paths(pod: Pod, system: System) -> Iterable[tuple[str | int, ...]]:
    """Yield the paths at which the pod names a group of this system's."""
    places = {"labels": pod.labels, "annotations": pod.annotations}
    for path in system.grouped:
        there = pod.spec if path[0] == "spec" else places[str(path[1])]
        if there.get(str(path[-1])) is not None:
            yield path


def scheduler_of(name: str) -> System | None:
    """Return the system whose scheduler has this name."""
    return next((system for system in BY_NAME.values() if system.scheduler and system.scheduler == name), None)


# --- the queues that are required -------------------------------------------------------------------------------------

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
    pod: Pod, user: str, required: Required, catalog: Catalog, *, pods_in_kueue: bool, joined: DefaultQueue | None = None
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


def _past(pod: Pod, system: System, required: Required, *, made: bool, joined: DefaultQueue | None) -> Past | None:
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
