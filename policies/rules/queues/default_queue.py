"""Default queue: a GPU pod that names no queue and no scheduler waits in the one that its platform means for it.

Reads   spec.schedulerName, what queue systems read of labels and annotations, owners, claims, the expected duration
Writes  ``default.queue``. KAI: spec.schedulerName and a label. Volcano: spec.schedulerName and an annotation. Slurm
        bridge: spec.schedulerName, and on a pod without owner annotations of partition and time limit. A pod that
        names the system's scheduler lacks the queue alone. Kueue: nothing, for its queue is the workload's
Judges  nothing: ``required_queue`` does
Never   moves a pod that names a node, another scheduler, a queue or a pod group, or is a DaemonSet's
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from kube.tree import Path
from policies.messages import At, phrase
from policies.planning.plan import Plan
from policies.pods.queue_systems import SLURM, SLURM_TIME
from policies.queues.joining import Idle, JoinedQueue, silent
from policies.request import Request
from policies.verdict import Edit, Remark, at_field

NAME = "queue"
FIELD = "spec.default.queue"
_SCHEDULER: Path = ("spec", "schedulerName")


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Write the queue, or tell the platform team why it is not written as given."""
    default, joined = plan.settings.queues.default, plan.joined
    if default is not None and default.value is None and silent(plan.pod, plan.actor):
        yield default.differs("queue", NAME)
    if isinstance(joined, Idle):
        yield idle(joined.why, joined)
    elif isinstance(joined, JoinedQueue):
        yield from _written(plan, joined)


def _written(plan: Plan, joined: JoinedQueue) -> Iterator[Edit | Remark]:
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


def idle(why: str, default: JoinedQueue | Idle) -> Remark:
    """Return the remark that a default does not act as given. ``why``: a phrase of BERTH-227."""
    found = phrase(why, queue=default.queue, system=default.system.title, key=At(default.system.path))
    return Remark(code="BERTH-227", found=found, rule=NAME, policies=default.policies, fields=at_field(FIELD, default.policies))
