"""The rows about the queue in which a pod waits (``policies.rules.queues``)."""

from __future__ import annotations

from policies.messages.row import Row

DENIALS = (
    Row(
        code="BERTH-144",
        title="a pod past the queue that is required",
        kind="denial",
        word="skipped",
        templates={
            "node": "{path} names a node, past the queue of {system} that is required here",
            "scheduler": "{path} is {value}, past the queue of {system} that is required here",
            "no queue": "{path} is not set, and a queue of {system} is required here",
            "queue": '{path} is "{value}", a queue that is not allowed here',
            "group": "{path} names a pod group, whose queue nobody has judged",
            "owner": "{path} names an owner, whose queue {system} may take, and made by no known controller",
            "adopted": "{path} names an owner that it had not before, whose queue {system} would take",
            "grown": "an update adds GPUs to its pods, and {system} leaves them in the group that it has",
            "kueue parent": "{path} is not what Kueue writes there, by which Kueue would leave the pods alone",
            "kueue": "neither the pod nor its workload is in a queue of Kueue, which is required here",
            "kueue queue": '{path} is "{value}", a queue that is not allowed here',
            "alone": "the pod is of no workload, and Kueue holds back workloads alone here",
            "ungated": '{path} is "{value}", and Kueue has put no gate on the pod',
            "queues differ": "{policies:and} admit no queue together: this is a policy conflict, not your pod",
            "removed": "{path} is removed or changed, by which the pod would leave its queue",
            "to queue": "set it to {queues:or}",
            "to job queue": "set spec.queue of its job to {queues:or}",
            "to any queue": "set it to a queue of {system}",
            "to scheduler": "set it to {scheduler}, and {key} to {queues:or}",
            "to scheduler alone": "set it to {scheduler}",
            "label workload": "label the workload {label}: {queues:or}",
            "label workload any": "label the workload {label} with a queue",
            "by workload": "let a workload with the label {label}: {queues:or} make it",
            "by workload any": "let a workload with the label {label} make it",
            "create it anew": "create it anew while Kueue runs",
            "leave it": "leave it as it is",
            "make it anew": "delete it, and let its owner make another",
            "recreate workload": "delete the workload, and create it again",
            "maker": "Let a workload make its pods; the platform team lists a controller that may with --catalog (podMakers), and its"
            " namespace with --platform-namespaces.",
            "pods in kueue": "A pod without a workload waits there only if Kueue manages pods, which serve --queues kueue says.",
            "allowed": "Allowed here: {queues:or}.",
        },
    ),
)
REMARKS = (
    Row(  # Kueue holds a workload for ever and says so in an object of its own alone
        code="BERTH-244",
        title="a workload that its queue can't place",
        kind="warning",
        audience="author",
        templates={
            "no queue near": '{path} is "{queue}", no LocalQueue that is known in namespace {namespace}: it waits for ever; write "{near}"',
            "no queue others": '{path} is "{queue}", no LocalQueue that is known in namespace {namespace}: it waits for ever; '
            "write {there:or}",
            "no queue": '{path} is "{queue}", and namespace {namespace} has no LocalQueue: it waits for ever; '
            "type: kubectl get localqueues -A",
            "no cluster queue": "LocalQueue {queue} is of ClusterQueue {cluster}, which is not known: it waits for ever; "
            "type: kubectl get clusterqueues",
            "stopped": "{which} is stopped (spec.stopPolicy: {policy}): it waits until that is None; other queues: "
            "kubectl get localqueues -n {namespace}",
            "another namespace": "ClusterQueue {cluster} of queue {queue} takes nothing of namespace {namespace} (spec.namespaceSelector): "
            "it waits for ever; name another queue: kubectl get localqueues -n {namespace}",
            "not covered": "queue {queue} ({cluster}) covers no {resource}: it waits for ever, unless Kueue's configuration maps it; "
            "ask for {covered:or}, or add it to the ClusterQueue",
            "nothing covered": "queue {queue} ({cluster}) covers no {resource}: it waits for ever, unless Kueue's configuration maps it; "
            "add it to the ClusterQueue",
            "no flavor": "no flavor of queue {queue} ({cluster}) takes {template}, so it never runs: {why}; {fix}",
            "no flavor others": "no flavor of queue {queue} ({cluster}) takes {template}, so it never runs: {why}; {fix}. {others:;}",
            "pods denied": "queue {queue} ({cluster}) admits {template}, and its pods never run: {why}; {fix}",
            "pods denied others": "queue {queue} ({cluster}) admits {template}, and its pods never run: {why}; {fix}. {others:;}",
            "wrong flavor": "queue {queue} ({cluster}) may put {template} where its pods never run: {why}; "
            "choose by nodeSelector: kubectl get resourceflavors -o yaml",
            "taint": "{flavor} has taint {taint}",
            "label": "{flavor} has {key}={value}",
            "policy": "{policies:and} denies them in {flavor} ({code})",
            "place": "what policies write is outside {flavor}",
            "gone": "flavor {flavor} is not known",
            "tolerate": "tolerate it in the template, or in the flavor",
            "ask for": "ask for that, or name another queue: kubectl get localqueues -n {namespace}",
            "other queue": "name another queue: kubectl get localqueues -n {namespace}",
            "make flavor": "type: kubectl get resourceflavors",
        },
    ),
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
    Row(  # the author's label or annotation is ignored in silence by the scheduler that it is meant for
        code="BERTH-246",
        title="a key that a scheduler ignores",
        kind="warning",
        audience="author",
        templates={
            "near": "{path} is a key that {reader} does not know and ignores; did you mean {right}?",
            "place": "{path} is ignored: {reader} does not read it there; write {right}",
        },
    ),
    Row(  # the pod runs without a GPU
        code="BERTH-256",
        title="a part of a GPU that its scheduler does not give",
        kind="warning",
        audience="author",
        templates={
            "fact": "{path} is read by KAI and Run:ai alone, and {scheduler} places the pod: it gets no GPU; set {field} to {kai}",
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
            "queue and claims": "default queue {queue} of {system} does not act: {system} denies pods with resource claims",
            "of the workload": "default queue {queue} is not written on the pod: {system} reads it from the workload that owns it ({key})",
        },
    ),
)
