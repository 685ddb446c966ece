"""Scheduler: a GPU pod is placed by the scheduler, or the profile of one, that its platform means for it.

Reads   spec.schedulerName
Writes  spec.schedulerName, where it is Kubernetes' own default: ``default.schedulerName``
Judges  nothing
Never   moves a pod that names another scheduler, belongs to a queue, has a node, or is a DaemonSet's; acts beside a
        ``default.queue`` whose system has a scheduler of its own
"""

from __future__ import annotations

from collections.abc import Iterator

from kube.pod import DEFAULT_SCHEDULER
from kube.tree import Path
from policies.planning.plan import Plan
from policies.queues.joining import JoinedQueue
from policies.request import Request
from policies.verdict import Edit, Remark

NAME = "scheduler"
_PATH: Path = ("spec", "schedulerName")


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Write the name, or tell the platform team that its policies differ."""
    default = plan.settings.running.scheduler
    if isinstance(plan.joined, JoinedQueue) and plan.joined.moves:
        return
    if default is None or not plan.actor.moves or plan.pod.scheduler not in ("", DEFAULT_SCHEDULER) or default.value == DEFAULT_SCHEDULER:
        return
    if default.value is None:
        yield default.differs("schedulerName", NAME)
    else:
        yield Edit(op="add", path=_PATH, value=default.value, rule=NAME, policies=default.policies)
