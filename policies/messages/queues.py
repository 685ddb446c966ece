"""The rows about the queue in which a pod waits (``policies.rules.queues``)."""

from __future__ import annotations

from policies.messages.row import MessageRow

DENIALS = (
    MessageRow(
        code="BERTH-144",
        title="a pod that bypasses the required queue",
        kind="denial",
        word="skipped",
        templates={
            "node": "{path} names a node, which bypasses the required {system} queue",
            "scheduler": "{path} is {value}, which bypasses the required {system} queue",
            "no queue": "{path} is not set, and a {system} queue is required here",
            "queue": '{path} is "{value}", a queue that is not allowed here',
            "group": "{path} names a pod group, whose queue is not checked",
            "owner": "{path} names an owner whose queue {system} may use, but no known controller made the pod",
            "adopted": "{path} names a new owner, whose queue {system} would use",
            "grown": "the update adds GPUs to its pods, but {system} keeps them in their old group",
            "kueue parent": "{path} is not what Kueue writes there, so Kueue would ignore the pods",
            "kueue": "neither the pod nor its workload is in a Kueue queue, which is required here",
            "kueue queue": '{path} is "{value}", a queue that is not allowed here',
            "alone": "the pod has no workload, and Kueue only manages workloads here",
            "ungated": '{path} is "{value}", but Kueue has not gated the pod',
            "queues differ": "{policies:and} together allow no queue: a policy conflict, not a pod error",
            "removed": "{path} is removed or changed, so the pod would leave its queue",
            "to queue": "set it to {queues:or}",
            "to job queue": "set spec.queue of its job to {queues:or}",
            "to any queue": "set it to a {system} queue",
            "to scheduler": "set it to {scheduler}, and {key} to {queues:or}",
            "to scheduler alone": "set it to {scheduler}",
            "label workload": "label the workload {label}: {queues:or}",
            "label workload any": "label the workload {label} with a queue",
            "by workload": "create it through a workload with the label {label}: {queues:or}",
            "by workload any": "create it through a workload with the label {label}",
            "create it again": "create it again while Kueue runs",
            "leave it": "keep it unchanged",
            "recreate it": "delete it, and let its owner create another",
            "recreate workload": "delete the workload, and create it again",
            "maker": "Create pods through a workload. The platform team can allow a controller with --catalog (podMakers), and its"
            " namespace with --platform-namespaces.",
            "pods in kueue": "Kueue only queues a pod without a workload if it manages pods (berth serve --queues kueue).",
            "allowed": "Allowed here: {queues:or}.",
        },
    ),
)
REMARKS = (
    MessageRow(  # Kueue holds a workload for ever and says so in an object of its own alone
        code="BERTH-244",
        title="a workload that its queue can't place",
        kind="warning",
        audience="author",
        templates={
            "no queue near": '{path} is "{queue}", not a known LocalQueue in namespace {namespace}: it waits forever; write "{near}"',
            "no queue others": '{path} is "{queue}", not a known LocalQueue in namespace {namespace}: it waits forever; write {there:or}',
            "no queue": '{path} is "{queue}", and namespace {namespace} has no LocalQueue: it waits forever; '
            "run: kubectl get localqueues -A",
            "no cluster queue": "LocalQueue {queue} uses ClusterQueue {cluster}, which is not known: it waits forever; "
            "run: kubectl get clusterqueues",
            "stopped": "{which} is stopped (spec.stopPolicy: {policy}): it waits until that is None; other queues: "
            "kubectl get localqueues -n {namespace}",
            "another namespace": "ClusterQueue {cluster} of queue {queue} excludes namespace {namespace} (spec.namespaceSelector): "
            "it waits forever; name another queue: kubectl get localqueues -n {namespace}",
            "not covered": "queue {queue} ({cluster}) covers no {resource}: it waits forever, unless Kueue's configuration maps it; "
            "request {covered:or}, or add it to the ClusterQueue",
            "nothing covered": "queue {queue} ({cluster}) covers no {resource}: it waits forever, unless Kueue's configuration maps it; "
            "add it to the ClusterQueue",
            "no flavor": "no flavor of queue {queue} ({cluster}) fits {template}, so it never runs: {why}; {fix}",
            "no flavor others": "no flavor of queue {queue} ({cluster}) fits {template}, so it never runs: {why}; {fix}. {others:;}",
            "pods denied": "queue {queue} ({cluster}) admits {template}, but its pods never run: {why}; {fix}",
            "pods denied others": "queue {queue} ({cluster}) admits {template}, but its pods never run: {why}; {fix}. {others:;}",
            "wrong flavor": "queue {queue} ({cluster}) may place {template} where its pods never run: {why}; "
            "set a nodeSelector that only a suitable flavor matches; to see flavors, run: kubectl get resourceflavors -o yaml",
            "taint": "{flavor} has taint {taint}",
            "label": "{flavor} has {key}={value}",
            "policy": "{policies:and} denies them in {flavor} ({code})",
            "place": "policies select nodes outside {flavor}",
            "gone": "flavor {flavor} is not known",
            "tolerate": "tolerate it in the template, or in the flavor",
            "ask for": "select that, or name another queue: kubectl get localqueues -n {namespace}",
            "other queue": "name another queue: kubectl get localqueues -n {namespace}",
            "make flavor": "run: kubectl get resourceflavors",
        },
    ),
    MessageRow(  # the author's word is ignored in silence by the scheduler that reads it
        code="BERTH-228",
        title="a value that a scheduler ignores",
        kind="warning",
        audience="author",
        templates={
            "near": '{path} is "{value}", which is unknown and ignored; did you mean "{near}"?',
            "known words": '{path} is "{value}", which is unknown and ignored; write {values:or}, or remove it',
        },
    ),
    MessageRow(  # the author's label or annotation is ignored in silence by the scheduler that it is meant for
        code="BERTH-246",
        title="a key that a scheduler ignores",
        kind="warning",
        audience="author",
        templates={
            "near": "{path} is not a key of {reader}, which ignores it; did you mean {right}?",
            "place": "{path} is ignored: {reader} does not read it there; write {right}",
        },
    ),
    MessageRow(  # the pod runs without a GPU
        code="BERTH-256",
        title="a fractional GPU without its scheduler",
        kind="warning",
        audience="author",
        templates={
            "fact": "only KAI and Run:ai read {path}, but {scheduler} places the pod, so it gets no GPU; set {field} to {kai}",
        },
    ),
    MessageRow(  # the platform team's default leaves the pod without a queue
        code="BERTH-227",
        title="a default queue that does not apply",
        kind="warning",
        audience="platform",
        word="skipped",
        templates={
            "queue not required": "default queue {queue} of {system} does not apply: it is not a required queue",
            "queue and claims": "default queue {queue} of {system} does not apply: {system} denies pods with resource claims",
            "of the workload": "default queue {queue} is not written to the pod: {system} reads it from the owning workload ({key})",
        },
    ),
)
