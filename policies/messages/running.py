"""The rows about how a pod runs: how long, with which memory, of which class (``policies.rules.running``)."""

from __future__ import annotations

from policies.messages.row import Row

DENIALS = (
    Row(
        code="BERTH-143",
        title="a run that may take too long",
        kind="denial",
        word="skipped",
        templates={
            "fact": "{path} is {seconds}, longer than the {most} that a pod may run here",
            "none there": "{path} is not set, and a pod may run {most} here",
            "fix": "set {path} to at most {most}",
            "go on": "A run that takes longer goes on from its last checkpoint in a next pod.",
        },
    ),
)
REMARKS = (
    Row(  # the author's memory limit now has two users, and the kernel ends the container at it
        code="BERTH-224",
        title="shared memory that counts against a limit",
        kind="warning",
        audience="author",
        of_edits=True,
        templates={
            "text": 'container "{container}" gets {size} in memory at {at}, which counts against its memory limit {limit}; raise the limit,'
            " or mount a volume of your own there (default of {policies:and})",
        },
    ),
    Row(  # the platform team's default does not do what it says
        code="BERTH-225",
        title="a default about how pods run that does not act as given",
        kind="warning",
        audience="platform",
        word="skipped",
        templates={
            "runtime expected": "default maxRuntime {given} does not act: the author expects a longer run ({annotation})",
            "runtime clipped": "default maxRuntime {given} is clipped to what is required: {most}",
            "volume there": "default sharedMemory does not act: the pod has a volume {volume} that is not in memory",
            "class not allowed": "default priorityClass {name} is in no ClusterGPUPolicy's allow.priorityClasses for this namespace: it"
            " does not act",
        },
    ),
    Row(  # a machine's network stays idle, or the pod asks for what its machine does not have
        code="BERTH-229",
        title="network devices that are not asked for",
        kind="warning",
        audience="author",
        word="skipped",
        templates={
            "text": "the pod takes every GPU of its machine but no network device: machines that it may run on differ in them ({kinds});"
            " name one instance type (default of {policies:and})",
        },
    ),
    Row(  # Kubernetes ends the author's run at a time that the author has not written
        code="BERTH-226",
        title="a run that was given an end",
        kind="warning",
        audience="author",
        of_edits=True,
        templates={
            "text": "the pod names no {path}, so it is ended after {most}; write another there, and save checkpoints (asked by"
            " {policies:and})",
            "shorter": "the pod is ended after {most}, the most that is allowed here, before the time that {annotation} names; save"
            " checkpoints, and go on in a next pod (asked by {policies:and})",
        },
    ),
)
