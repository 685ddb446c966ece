"""The rows about the queue in which a pod waits (``policies.rules.queues``)."""

from __future__ import annotations

from policies.messages.row import Row

REFUSALS = (
    Row(
        code="BERTH-144",
        title="a pod past the queue that is required",
        kind="refusal",
        word="skipped",
        templates={
            "node": "{path} names a node, past the queue of {system} that is required here",
            "scheduler": "{path} is {value}, past the queue of {system} that is required here",
            "no queue": "{path} is not set, and a queue of {system} is required here",
            "queue": '{path} is "{value}", a queue that is not allowed here',
            "group": "{path} names a pod group, whose queue nobody has judged",
            "owner": "{path} names an owner, whose queue {system} may take, and made by no known controller",
            "kueue": "neither the pod nor its workload is in a queue of Kueue, which is required here",
            "kueue queue": '{path} is "{value}", a queue that is not allowed here',
            "queues differ": "{policies:and} admit no queue together: this is a policy conflict, not your pod",
            "removed": "{path} is removed or changed, by which the pod would leave its queue",
            "to queue": "set it to {queues:or}",
            "to any queue": "set it to a queue of {system}",
            "to scheduler": "set it to {scheduler}, and {key} to {queues:or}",
            "to scheduler alone": "set it to {scheduler}",
            "label workload": "label the workload {label}: {queues:or}",
            "label workload any": "label the workload {label} with a queue",
            "leave it": "leave it as it is",
            "maker": "Let a workload make its pods; the platform team lists a controller that may with --catalog (podMakers).",
            "pods in kueue": "A pod without a workload waits there only if Kueue manages pods, which serve --queues kueue says.",
            "allowed": "Allowed here: {queues:or}.",
        },
    ),
)
REMARKS = (
    Row(  # the author's word is ignored in silence by the scheduler that reads it
        code="BERTH-228",
        title="a word that a scheduler ignores",
        kind="warning",
        audience="author",
        templates={
            "near": '{path} is "{value}", which its reader ignores; did you mean "{near}"?',
            "known words": '{path} is "{value}", which its reader ignores; write {values:or}, or remove it',
        },
    ),
    Row(  # the platform team's default leaves the pod without a queue
        code="BERTH-227",
        title="a default queue that does not act",
        kind="warning",
        audience="platform",
        word="skipped",
        templates={
            "queue not required": "default queue {queue} of {system} does not act: it is none of those that are required",
            "queue and claims": "default queue {queue} of {system} does not act: {system} refuses pods with resource claims",
            "of the workload": "default queue {queue} is not written: {system} reads it from the workload that owns the pod ({key})",
        },
    ),
)
