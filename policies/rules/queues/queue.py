"""Queue: a GPU pod that names no queue and no scheduler waits in the queue that its platform means for it, and none runs past the
queue that its platform requires.

Reads   spec.nodeName, spec.schedulerName, scheduling gates, what queue systems read of labels and annotations, owners, claims,
        the expected duration, the user who creates the pod
Writes  ``default.queue``. KAI: spec.schedulerName and a label. Volcano: spec.schedulerName and an annotation. Slurm
        bridge: spec.schedulerName, and on a pod without owner annotations of partition and time limit. A pod that
        names the system's scheduler lacks the queue alone. Kueue: nothing, for its queue is the workload's
Checks  ``require.queue``: on mutate the pod as ``default.queue`` leaves it, on validate as it is. On an update that it
        stays in its queue
Never   moves a pod that names a node, another scheduler, a queue or a pod group, or is a DaemonSet's; believes an owner, a pod
        group or a gate that an author may have written
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from kube.pod import Pod
from kube.tree import Path
from policies.fixes import Fix, leave_out, write
from policies.messages import At, Phrase, cut_text, phrase
from policies.planning.plan import Plan
from policies.planning.queues import DefaultQueue, Past, Required, grouping_paths, past, scheduler_of, silent
from policies.pods.actors import MANAGED, QUEUE_NAME
from policies.pods.queue_systems import ANY, KAI, KAI_GROUP, KUEUE, READ_OF_OWNERS, SLURM, SLURM_TIME, System, owners_of, value_of
from policies.request import Request
from policies.verdict import Edit, Remark, Violation, at_field

NAME = "queue"
_DEFAULT, FIELD = "spec.default.queue", "spec.require.queue"
_SCHEDULER: Path = ("spec", "schedulerName")
_KUEUE_LABEL: Path = ("metadata", "labels", MANAGED)
_OWNERS: Path = ("metadata", "ownerReferences")
_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
"""Takes owners away that are deleted without what they own."""
_SHOWN = 30
"""characters of a value that a message shows"""
_FIRST, _MOST = 2, 10
"""queues that a fix names, and those that a message names"""


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Write the queue, or tell the platform team why it is not written as given."""
    default, joined = plan.settings.queues.default, plan.joined
    if default is not None and default.value is None and silent(plan.pod, plan.actor):
        yield default.differs("queue", NAME)
    if joined is not None and joined.why is not None:
        yield idle(joined.why, joined)
    elif joined is not None:
        yield from _written(plan, joined)


def _written(plan: Plan, joined: DefaultQueue) -> Iterator[Edit | Remark]:
    system = joined.system
    if joined.moves:
        yield Edit(op="add", path=_SCHEDULER, value=system.scheduler, rule=NAME, policies=joined.policies)
    if not joined.on_pod:
        yield idle("of the workload", joined)
        return
    yield Edit(op="add", path=system.path, value=joined.queue, rule=NAME, policies=joined.policies)
    seconds = plan.author.seconds
    if system is SLURM and seconds is not None and seconds > 0 and SLURM_TIME not in plan.pod.annotations:
        minutes = str(ceil(seconds / 60))
        yield Edit(op="add", path=("metadata", "annotations", SLURM_TIME), value=minutes, rule=NAME, policies=joined.policies)


def idle(why: str, default: DefaultQueue) -> Remark:
    """Return the remark that a default does not act as given. ``why``: a phrase of BERTH-227."""
    found = phrase(why, queue=default.queue, system=default.system.title, key=At(default.system.path))
    return Remark(code="BERTH-227", found=found, rule=NAME, fields=at_field(_DEFAULT, default.policies))


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield a violation if the pod is past every queue that is required."""
    required = plan.settings.queues.required
    if required is None:
        return
    joined = plan.joined if plan.joined is not None and plan.joined.why is None else None
    kueue = "kueue" in plan.snapshot.queues
    found = past(plan.pod, request.user, required, plan.snapshot.catalog, pods_in_kueue=kueue, joined=joined)
    if found is not None:
        yield violation(found, required)


def check_update(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield a violation if an update takes the pod out of its queue, or into a group of its author's."""
    required = plan.settings.queues.required
    if required is not None:
        old = Pod(request.old_pod or {})
        yield from (violation(past, required) for past in _left(plan, request, old, required))


def _left(plan: Plan, request: Request, old: Pod, required: Required) -> Iterator[Past]:
    pod, whole = plan.pod, Pod(request.pod)  # the plan's is without what tells owners and groups apart
    if required.of(KUEUE) and old.labels.get(MANAGED) == "true":
        if pod.labels.get(MANAGED) != "true":
            yield Past(how="removed", system=KUEUE, path=_KUEUE_LABEL)
        yield from _changed(pod, old, KUEUE, required)
    system = scheduler_of(pod.scheduler)
    if system is None or not required.of(system) or required.admits(system, ANY):
        return
    yield from _changed(pod, old, system, required)
    by_controller = request.user in plan.snapshot.catalog.pod_makers
    if system in READ_OF_OWNERS:
        yield from _with_other_owners(whole, old, system, required, by_controller=by_controller or request.user == _COLLECTOR)
    before = {path: _at(old, path) for path in grouping_paths(old, system)}
    for path in grouping_paths(pod, system):
        if _at(pod, path) != before.get(path) and not by_controller and not (path == KAI_GROUP and _by_kai(whole)):
            yield Past(how="group", system=system, path=path)


def _with_other_owners(pod: Pod, old: Pod, system: System, required: Required, *, by_controller: bool) -> Iterator[Past]:
    """Yield how the pod leaves its queue by its owners: a system takes the queue of the topmost one, and of the pod where it has none.
    Controllers that adopt a pod look at its labels alone. Without its owner KAI leaves a pod in whatever group is written on it."""
    before, now = owners_of(old.metadata), owners_of(pod.metadata)
    if system is KAI:
        removed = now != before and not by_controller
    else:
        removed = bool(before) and not now and not required.admits(system, str(value_of(pod, system)))
    if not now.issubset(before):
        yield Past(how="adopted", system=system, path=_OWNERS)
    elif removed:
        yield Past(how="removed", system=system, path=_OWNERS)


def _by_kai(pod: Pod) -> bool:
    """Return whether the group is the one that KAI makes of the pod: kai-scheduler 0.17.0 pkg/podgrouper, where a pod with an owner is
    put back into its own if an author changes it (pod_controller.go), and defaultgrouper (CalcPodGroupName) names the others."""
    own = f"pg-{pod.metadata.get('name')}-{pod.metadata.get('uid')}"
    return bool(pod.metadata.get("ownerReferences")) or _at(pod, KAI_GROUP) == own


def _at(pod: Pod, path: Path) -> object:
    there = pod.spec if path[0] == "spec" else pod.labels if path[1] == "labels" else pod.annotations
    return there.get(str(path[-1]))


def _changed(pod: Pod, old: Pod, system: System, required: Required) -> Iterator[Past]:
    before, now = value_of(old, system), value_of(pod, system)
    if now == before:
        return
    if now is None:
        yield Past(how="removed", system=system, path=system.path)
    elif not isinstance(now, str) or not required.admits(system, now):
        yield Past(how="queue", system=system, path=system.path, value=str(now))


def violation(found: Past, required: Required) -> Violation:
    """Return the violation of a pod, or of a workload, that is past the queues that are required."""
    return Violation(
        code="BERTH-144",
        found=_fact(found, required),
        advice=_advice(found, required),
        more=tuple(_more(found, required)),
        rule=NAME,
        path=found.path,
        fields=at_field(FIELD, required.policies),
        fixes=_fixes(found, required),
    )


def _fixes(bypass: Past, required: Required) -> tuple[Fix, ...]:
    """Return what the author may change in the pod; none if its workload says the queue, or an update may not change it."""
    if bypass.how in ("node", "group", "owner", "kueue parent"):
        return leave_out(bypass.path)
    if bypass.how == "scheduler":
        return write(bypass.path, bypass.system.scheduler)
    is_of_pod = bypass.how in ("no queue", "queue", "kueue queue", "job queue")
    return write(bypass.path, *(name for name in required.of(bypass.system) if name != ANY)) if is_of_pod else ()


def _fact(found: Past, required: Required) -> Phrase:
    path, system = At(found.path), found.system.title
    match found.how:
        case "queues differ":
            return phrase(found.how, policies=required.policies)
        case "kueue" | "alone":
            return phrase(found.how)
        case "scheduler":
            return phrase(found.how, path=path, value=cut_text(found.value, _SHOWN), system=system)
        case "job queue":
            return phrase("queue", path=path, value=cut_text(found.value, _SHOWN))
        case "queue" | "kueue queue" | "ungated":
            return phrase(found.how, path=path, value=cut_text(found.value, _SHOWN))
        case "grown":
            return phrase(found.how, system=system)
        case "group" | "removed" | "kueue parent":
            return phrase(found.how, path=path)
    return phrase(found.how, path=path, system=system)


def _advice(found: Past, required: Required) -> Phrase:
    queues, anywhere = required.of(found.system)[:_FIRST], required.admits(found.system, ANY)
    match found.how:
        case "queues differ":
            return phrase("fix the policies")
        case "adopted":
            return phrase("recreate it")
        case "grown":
            return phrase("recreate workload")
        case "node" | "group" | "owner" | "kueue parent":
            return phrase("remove")
        case "job queue":
            return phrase("to job queue", queues=queues)
        case "removed":
            return phrase("leave it")
        case "kueue":
            return phrase("label workload any", label=QUEUE_NAME) if anywhere else phrase("label workload", label=QUEUE_NAME, queues=queues)
        case "alone":
            return phrase("by workload any", label=QUEUE_NAME) if anywhere else phrase("by workload", label=QUEUE_NAME, queues=queues)
        case "ungated":
            return phrase("create it again")
        case "scheduler" if anywhere:
            return phrase("to scheduler alone", scheduler=found.system.scheduler)
        case "scheduler":
            return phrase("to scheduler", scheduler=found.system.scheduler, key=At(found.system.path), queues=queues)
    return phrase("to any queue", system=found.system.title) if anywhere else phrase("to queue", queues=queues)


def _more(found: Past, required: Required) -> Iterator[Phrase]:
    queues = required.of(found.system)
    if found.how == "owner":
        yield phrase("maker")
    elif found.how in ("kueue", "alone"):
        yield phrase("pods in kueue")
    about_queues = ("scheduler", "no queue", "queue", "kueue", "alone", "kueue queue", "job queue")
    if len(queues) > _FIRST and found.how in about_queues and ANY not in queues:
        yield phrase("allowed", queues=queues[:_MOST])
