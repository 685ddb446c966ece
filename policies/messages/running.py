"""The rows about how a pod runs: how long, with which memory and which network devices."""

from __future__ import annotations

from policies.messages.row import MessageRow

DENIALS = (
    MessageRow(
        code="BERTH-143",
        title="a time limit above the maximum",
        kind="denial",
        word="skipped",
        templates={
            "fact": "{path} is {seconds}, longer than the {most} that a pod may run here",
            "none there": "{path} is not set, and a pod may run at most {most} here",
            "fix": "set {path} to at most {most}",
            "go on": "A longer run must continue from its last checkpoint in a new pod.",
        },
    ),
)
REMARKS = (
    MessageRow(  # the author's memory limit now has two users, and the kernel ends the container at it
        code="BERTH-224",
        title="shared memory that counts against the memory limit",
        kind="warning",
        audience="author",
        of_edits=True,
        templates={
            "text": 'container "{container}" gets {size} of memory at {at}, which counts against its memory limit {limit}; raise the limit,'
            " or mount your own volume there (default of {policies:and})",
        },
    ),
    MessageRow(  # the platform team's default does not do what it says
        code="BERTH-225",
        title="a run-time default that does not apply as written",
        kind="warning",
        audience="platform",
        word="skipped",
        templates={
            "runtime expected": "default maxRuntime {given} does not apply: the author expects a longer run ({annotation})",
            "runtime clipped": "default maxRuntime {given} is clipped to what policies require: {most}",
            "volume there": "default sharedMemory does not apply: the pod has a volume {volume} that is not in memory",
            "class not allowed": "default priorityClass {name} does not apply: no ClusterGPUPolicy allows it here (allow.priorityClasses)",
        },
    ),
    MessageRow(  # a machine's network stays idle, or the pod asks for what its machine does not have
        code="BERTH-229",
        title="network devices that are not requested",
        kind="warning",
        audience="author",
        word="skipped",
        templates={
            "text": "the pod gets every GPU of its machine but no network device: its possible machines have different ones ({kinds});"
            " select one instance type (default of {policies:and})",
        },
    ),
    MessageRow(  # Kubernetes ends the author's run at a time that the author has not written
        code="BERTH-226",
        title="a time limit that was added",
        kind="warning",
        audience="author",
        of_edits=True,
        templates={
            "text": "the pod sets no {path}, so it is stopped after {most}; set your own, and save checkpoints (required by"
            " {policies:and})",
            "shorter": "the pod is stopped after {most}, the maximum here, which is before the time in {annotation}; save"
            " checkpoints, and continue in a new pod (required by {policies:and})",
        },
    ),
)
