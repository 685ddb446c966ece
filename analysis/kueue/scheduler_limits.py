"""Whether the queue of Volcano or KAI that pods wait in can ever have as much as they request.

Their schedulers start no pod of a group before its least number of pods fits (volcano pkg/scheduler/plugins/capacity ``jobEnqueueable``,
kai-scheduler pkg/scheduler/plugins/proportion). Which kinds are such groups, and with how many pods, is judged for Volcano's own jobs, and
for those of Kubeflow and Ray; of others each pod counts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kube.pod import Pod
from kube.requests import requests, write_units
from kube.templates import group_of, pods_at_once
from kube.tree import Path, Raw, dotted, map_at, text_of, value_at
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.scheduler_queues import SchedulerQueue
from policies.messages import phrase
from policies.planning.queues import scheduler_of
from policies.pods.queue_systems import KAI, VOLCANO, VOLCANO_JOB_QUEUE, System, value_of
from policies.verdict import Remark

CODE, NAME = "BERTH-244", "queue_limits"
_LEAST_PODS: Mapping[str, Path] = {
    "batch.volcano.sh": ("spec", "minAvailable"),
    "kubeflow.org": ("spec", "runPolicy", "schedulingPolicy", "minAvailable"),
    "ray.io": ("spec", "minAvailable"),
}
"""API group of workloads whose pods start together -> where they say how many are enough; without it all are needed."""


class QueuedTemplate(NamedTuple):
    """The pods of one template."""

    template: Path
    pod: Raw


def queue_of(value: Raw, pod: Raw) -> tuple[System, str] | None:
    """Return the system and the queue of Volcano or KAI that a pod waits in; None for another scheduler, or without a queue."""
    read = Pod(pod)
    system = scheduler_of(read.scheduler)
    if system is not KAI and system is not VOLCANO:
        return None
    own = map_at(value, "metadata", system.where).get(system.key)
    named = own if own and system is KAI else read.annotations.get(VOLCANO_JOB_QUEUE) if system is VOLCANO else None
    queue = text_of(named or value_of(read, system))
    return (system, queue) if queue else None


def limit_remarks(value: Raw, pods: Sequence[QueuedTemplate], known: ClusterFacts) -> Iterator[Remark]:
    """Yield a warning for each resource of which a queue, or one above it, has too little for a workload."""
    for queue in dict.fromkeys(filter(None, (queue_of(value, queued.pod) for queued in pods))):
        system, name = queue
        mine = [queued for queued in pods if queue_of(value, queued.pod) == queue]
        for place, bounds in _upwards(system, name, known):
            for resource, limit in bounds.limits.items():
                need, template = _need(value, mine, resource)
                shown = {
                    "queue": place,
                    "system": system.title,
                    "field": bounds.fields[resource],
                    "resource": resource,
                    "most": write_units(resource, limit),
                    "need": write_units(resource, need),
                    "template": dotted(template),
                }
                free = None if bounds.allocated is None else limit - bounds.allocated.get(resource, 0)
                if need > limit:
                    yield Remark(code=CODE, found=phrase("over limit", **shown), rule=NAME, path=system.path)
                elif free is not None and need > max(free, 0):
                    shown["free"] = write_units(resource, max(free, 0))
                    yield Remark(code=CODE, found=phrase("limit full", **shown), rule=NAME, path=system.path)


def knows_limits(value: Raw, pod: Raw, known: ClusterFacts) -> bool:
    """Return whether all is known that the queue of a pod limits, what its pods have now included; True without a queue."""
    queue = queue_of(value, pod)
    if queue is None:
        return scheduler_of(Pod(pod).scheduler) not in (KAI, VOLCANO)
    places = list(_upwards(*queue, known))
    return bool(places) and all(not bounds.limits or bounds.allocated is not None for _, bounds in places)


def _upwards(system: System, name: str, known: ClusterFacts) -> Iterator[tuple[str, SchedulerQueue]]:
    """Yield a queue and those above it, as far as they are known."""
    passed: set[str] = set()
    while name and name not in passed:
        passed.add(name)
        queue = known.scheduler_queues.get((system.name, name))
        if queue is None:
            return
        yield name, queue
        name = queue.parent


def _need(value: Raw, pods: Sequence[QueuedTemplate], resource: str) -> tuple[int, Path]:
    """Return the least of a resource that is needed before any pod starts, and the template that needs most of it.

    Of a group that starts with fewer pods than it has, those count that need least.
    """
    amounts = {queued.template: requests(map_at(queued.pod, "spec")).amounts.get(resource, 0) for queued in pods}
    largest = max(amounts, key=lambda template: amounts[template])
    path = _LEAST_PODS.get(group_of(text_of(value.get("apiVersion"))))
    if path is None:
        return amounts[largest], largest
    each = sorted(amount for template, amount in amounts.items() for _ in range(min(_least_pods(value, template), 10_000)))
    least = value_at(value, path)
    return sum(each[: least if isinstance(least, int) and least > 0 else None]), largest


def _least_pods(value: Raw, template: Path) -> int:
    """Return the fewest pods of a template: a group of Ray's workers may start with ``minReplicas``."""
    above = map_at(value_at(value, template[:-1]) or {})
    least, count = above.get("minReplicas"), pods_at_once(value, template)
    replicas = above.get("replicas")
    if isinstance(least, int) and isinstance(replicas, int) and 0 <= least < replicas:
        return count // replicas * least
    return count
