"""What ``default.queue`` writes on a new workload: Kueue's label and topology, Slurm bridge's partition and time limit.

A default never moves a workload that names a queue of any system, or whose pods name another scheduler or a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from kube.pod import DEFAULT_SCHEDULER
from kube.tree import Path, map_at
from policies.offers.constraints import Compiled
from policies.planning import plan
from policies.planning.queues import DefaultQueue, default_queue, silent
from policies.pods.queue_systems import KUEUE, SLURM, SLURM_TIME, SYSTEMS, given_queue
from policies.rules.queues.queue import NAME, idle
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Edit, Remark
from policies.workloads.queues.queued import Asking, QueuedPods, QueuedWorkload, has_parent, said, takes

TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology"
"""The annotation of a pod template by which Kueue prefers to place its pods together (kueue apis/kueue/v1beta2,
topology_types.go; read in pkg/controller/jobframework/tas.go)."""
WORDS = frozenset(
    f"kueue.x-k8s.io/podset-{word}"
    for word in (
        *("required-topology", "preferred-topology", "unconstrained-topology", "slice-required-topology", "slice-size"),
        *("slice-required-topology-constraints", "group-name"),
    )
)
"""Kueue's annotations about topology, at most one of which may be beside some others: where an author writes any, none is added."""
_ELASTIC = "kueue.x-k8s.io/elastic-job"
"""Annotation of a Job that Kueue resizes: it denies one with a preferred topology (kueue pkg/controller/jobs/job, webhook)."""
_TIME: Path = ("metadata", "annotations", SLURM_TIME)
_MINUTE = 60


def write_queue(made: QueuedWorkload, pods: QueuedPods, policies: Sequence[Compiled], facts: NamespaceFacts) -> Iterator[Edit | Remark]:
    """Yield what these policies write on the workload, or why a default does not act as given."""
    asking = pods.asking
    found = _queue(made, asking, policies)
    if isinstance(found, Remark):
        yield found
        return
    if found is not None:
        yield _edit(found.system.path, found.queue, found.policies)
        if found.system is SLURM and (minutes := _minutes(made, asking, policies, facts)) is not None:
            yield _edit(_TIME, str(minutes), found.policies)
    queue = found.queue if found is not None and found.system is KUEUE else said(made, KUEUE)
    if isinstance(queue, str) and queue and not has_parent(made.value, made.catalog, KUEUE) and made.known.kueue is not None:
        yield from _topologies(made, pods, policies, queue)


def is_written(path: Path) -> bool:
    """Return whether a value at this path of a workload may be Berth's."""
    return path in (KUEUE.path, SLURM.path, _TIME) or path[-3:] == ("metadata", "annotations", TOPOLOGY)


def _edit(path: Path, value: str, policies: tuple[str, ...]) -> Edit:
    return Edit(op="add", path=path, value=value, rule=NAME, policies=policies)


def _queue(made: QueuedWorkload, asking: Sequence[Asking], policies: Sequence[Compiled]) -> DefaultQueue | Remark | None:
    if not any(takes(made.known, system) for system in (KUEUE, SLURM)) or any(said(made, system) is not None for system in SYSTEMS):
        return None
    found: list[DefaultQueue | Remark] = []
    for one in asking:
        given_here = _of_pod(made, one, policies)
        if given_here is None or isinstance(given_here, Remark):
            return given_here
        found.append(given_here)
    return found[0] if found and all(one == found[0] for one in found) else None


def _of_pod(made: QueuedWorkload, one: Asking, policies: Sequence[Compiled]) -> DefaultQueue | Remark | None:
    """Return the queue that the default gives to one pod of the workload, or why none."""
    pod, merged = one.subject.pod, one.under(policies)
    default = merged.default
    if default is None or not silent(pod, one.subject.actor):
        return None
    if default.value is None:
        free = any(takes(made.known, system) and not has_parent(made.value, made.catalog, system) for system in (KUEUE, SLURM))
        return default.differs("queue", NAME) if free else None
    system, queue = given_queue(default.value)
    if system not in (KUEUE, SLURM) or not takes(made.known, system) or has_parent(made.value, made.catalog, system):
        return None
    if pod.scheduler not in ("", DEFAULT_SCHEDULER, system.scheduler):
        return None
    given = default_queue(pod, system, queue, default.policies, merged.required)
    return given if given.why is None else idle(given.why, given)


def _minutes(made: QueuedWorkload, asking: Sequence[Asking], policies: Sequence[Compiled], facts: NamespaceFacts) -> int | None:
    """Return the time limit of the pod that runs longest, in minutes; None if any of them says nothing, or the workload has one.

    Each pod is a job of Slurm's, and has the workload's limit.
    """
    if SLURM_TIME in map_at(map_at(made.value, "metadata"), "annotations"):
        return None
    longest = 0
    for one in asking:
        matched = tuple(c for c in policies if c in one.subject.may_match)
        seconds = plan.make_plan(facts, one.subject, matched).author.seconds
        if seconds is None or seconds <= 0:
            return None
        longest = max(longest, ceil(seconds / _MINUTE))
    return longest or None


def _topologies(made: QueuedWorkload, pods: QueuedPods, policies: Sequence[Compiled], queue: str) -> Iterator[Edit]:
    """Yield the preferred topology of each template of GPU pods, if the policy says that this queue has one."""
    annotations = map_at(map_at(made.value, "metadata"), "annotations")
    if annotations.get(_ELASTIC) == "true" or not WORDS.isdisjoint(pods.annotations):
        return
    for one in pods.asking:
        default, pod = one.under(policies).default, one.subject.pod
        if one.template is None or default is None or default.value is None or pod.node_name:
            continue
        if default.value.kueue == queue and default.value.topology is not None and pod.scheduler in ("", DEFAULT_SCHEDULER):
            yield _edit((*one.template, "metadata", "annotations", TOPOLOGY), default.value.topology, default.policies)
