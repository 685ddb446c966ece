"""Which queue ``default.queue`` gives a pod, if any.

A default never moves a pod of which anybody has chosen the node, a scheduler or a queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from kube.pod import DEFAULT_SCHEDULER, Pod
from policies.pods.permissions import KUEUE_LABELS, Actor
from policies.pods.queue_systems import BY_NAME, KUEUE, SLURM, SYSTEMS, System, given_queue, value_of
from policies.queues.merged_queues import MergedQueues

Why = Literal["queue not required", "queue and claims"]
"""Why a default does not act: a name of a phrase of BERTH-227."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedQueue:
    """The queue that a default gives a pod."""

    system: System
    queue: str
    policies: tuple[str, ...]
    moves: bool
    """True if the pod names no scheduler yet; else it names the system's, and lacks a queue alone."""
    on_pod: bool
    """False if the system reads the queue of such a pod from the workload that owns it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """A default that would act and can't."""

    system: System
    queue: str
    policies: tuple[str, ...]
    why: Why


def joining(pod: Pod, actor: Actor, queues: MergedQueues) -> JoinedQueue | Idle | None:
    """Return the queue that this pod gets; None if the default is silent, of Kueue's, or the pod's author is not silent."""
    default = queues.default
    if default is None or default.value is None or not silent(pod, actor):
        return None
    system, queue = given_queue(default.value)
    moves = _moves(pod, actor)
    if system is KUEUE or (not moves and pod.scheduler != system.scheduler):
        return None
    if queues.required is not None and not queues.required.admits(system, queue):
        return Idle(system=system, queue=queue, policies=default.policies, why="queue not required")
    if system is SLURM and pod.claims:  # its webhook denies such pods (slurm-bridge internal/admission)
        return Idle(system=system, queue=queue, policies=default.policies, why="queue and claims")
    return JoinedQueue(
        system=system,
        queue=queue,
        policies=default.policies,
        moves=moves,
        on_pod=system is not SLURM or not pod.metadata.get("ownerReferences"),
    )


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
