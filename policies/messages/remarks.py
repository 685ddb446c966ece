"""The rows of warnings about a decision, BERTH-2xx. A comment on each gives its audience and the reason for
it.

A warning that its reader can do nothing about teaches to skip all of them. So what was left out of a policy's
default is for the platform team; what the author wrote, asked for by annotation, or must know before the pod
waits, is for the author.
"""

from __future__ import annotations

from collections.abc import Mapping

from policies.messages.row import Audience, MessageRow, Word


def _to_author(code: str, title: str, word: Word | None = None, *, of_edits: bool = False, **templates: str) -> MessageRow:
    return _row(code, title, "author", word, of_edits=of_edits, templates=templates)


def _to_platform(code: str, title: str, word: Word | None = "skipped", **templates: str) -> MessageRow:
    return _row(code, title, "platform", word, of_edits=False, templates=templates)


def _row(code: str, title: str, audience: Audience, word: Word | None, *, of_edits: bool, templates: Mapping[str, str]) -> MessageRow:
    named = {name.replace("_", " "): template for name, template in templates.items()}
    return MessageRow(code=code, title=title, kind="warning", audience=audience, word=word, of_edits=of_edits, templates=named)


_POOL = "NodePool {pool} removes nodes after its terminationGracePeriod, and deletes pods with a longer one when draining starts"

ROWS = (
    _to_author(  # the author wrote the value, and a typo waits for ever; what is required is written all the same
        "BERTH-201",
        "a value that the catalog does not know",
        cloud='{where} {key}: "{value}" is a machine type of {cloud}, which no {platforms:or} node has',
        near='{where} {key}: "{value}" is not a known value; did you mean "{near}"?',
        known='{where} {key}: "{value}" is not a known value; known: {known}',
        new='{where} {key}: "{value}" is not a known value; if it is new, ask the platform team to add it',
        held="{unknown}. {demands:and} still applies, by label {label} of feature discovery",
    ),
    _to_author(  # the author gets neither default: a conflict that nobody else may notice
        "BERTH-202",
        "defaults that differ",
        "skipped",
        text="{policies:and} have different defaults for {axis}, so neither applies; set it yourself, or ask the platform team to"
        " make them equal",
    ),
    _to_platform(  # the platform team's default promises more than its requirements leave; the rest was written
        "BERTH-203",
        "a default that was clipped",
        clipped="default {constraint} is clipped to what policies require",
        toleration="default toleration {key} is not added: {policies:and} forbids it",
        grace="default gracePeriod {seconds} s is clipped to the maximum of {most} s",
    ),
    _to_platform(  # its default does nothing here, and the pod asked for nothing
        "BERTH-204",
        "a default that does not apply",
        unread="node defaults do not apply: the pod selects nodes by {authored}, which does not tell their devices",
        unread_value="node defaults do not apply: the catalog does not know the value in {authored}",
        nothing_left="default {constraints:and} does not apply: it conflicts with what is required or requested",
        on_no_node="default {constraints:and} does not apply: no node of the cluster has it, and no NodePool creates one",
        actor="default {axis} does not apply: no default selects nodes for {actor:and}",
        not_there="default nodeTemplate {name} does not apply: it does not exist",
        not_allowed="default nodeTemplate {name} does not apply: no ClusterGPUPolicy allows it here (allow.nodeTemplates)",
        forbidden="default nodeTemplate {name} does not apply: {policies:and} forbids its taint",
        template_leaves_nothing="default nodeTemplate {name} does not apply: it conflicts with what is required or requested",
    ),
    _to_platform(  # what it requires is not in force on this platform, whose nodes don't tell it
        "BERTH-205",
        "a constraint that a platform can't express",
        "inexpressible",
        text="{constraint} can't be expressed on {platform}, so it is ignored there",
    ),
    _to_author(  # the author wrote the label, and the pod may wait for ever
        "BERTH-206",
        "a label that is set only after boot",
        text="{where}: {key} is set only after a node boots, so {platform} creates no new node for this pod; use {other}",
    ),
    _to_platform(  # the platform team's catalog or facts lack what the pod requests: it is not judged as meant
        "BERTH-208",
        "an accelerator without known nodes",
        unknown_model="no known node has {name}: its placement is checked as for an unknown model",
        not_evaluated="no known node has {name}: its placement is not checked",
        claim="a resource claim can't be read: the pod's placement is not checked",
    ),
    _to_author(  # the author wrote the terms: too many to say what is required on more than one platform
        "BERTH-209",
        "too many node affinity terms",
        "inexpressible",
        text="the pod would get over {most} node affinity terms, so it gets those of the first platform only; write fewer terms",
    ),
    _to_platform(  # the platform team's default found no slice, and the pod keeps the GPU that it asked for
        "BERTH-210",
        "a MIG slice that was skipped",
        actor="MIG slice {size} skipped: the GPU request of {actor:and} is not changed",
        several='MIG slice {size} skipped: container "{container}" requests more than one whole GPU',
        nowhere="MIG slice {size} skipped: no allowed node on {platforms} has one; declare such nodes in a GPUNodeTemplate"
        " (gpus.migProfiles) or with --catalog",
        not_offered="MIG slice {size} skipped: no node of the cluster offers one, and no NodePool creates one; set up MIG on some nodes, or"
        " declare nodes to come in a GPUNodeTemplate (gpus.migProfiles)",
        not_known="MIG slice {size} skipped: no known node offers one; set up MIG on some nodes, or declare nodes to come in a"
        " GPUNodeTemplate (gpus.migProfiles)",
        any_platform="MIG slice {size} skipped: no allowed node on any platform has one; declare such nodes in a GPUNodeTemplate"
        " (gpus.migProfiles) or with --catalog",
    ),
    _to_platform(  # its default promises more time than its platform gives: the pod ends sooner than it says
        "BERTH-211",
        "a grace period that is cut short",
        None,
        cut="grace period {seconds} s is cut to {most} s: {by} allows no more",
        cut_by_pool="grace period {seconds} s is cut to {most} s: " + _POOL,
        set_past_platform="grace period {seconds} s is set, but {by} allows only {most} s",
        set_past_pool="grace period {seconds} s is set, but the pod gets {most} s: " + _POOL,
    ),
    _to_platform(  # its default and its maximum exclude each other here
        "BERTH-212",
        "disruption protection that was not added",
        text="{key} is not added: it takes no duration here, and protection is limited to {most}",
    ),
    _to_platform(  # its requirements don't reach a node that the author named, and may name
        "BERTH-213",
        "a placement that is not checked",
        unknown="the pod names a node whose labels are unknown: its placement is not checked",
        daemon="the DaemonSet's nodes violate what is required here, and its pods can't be moved",
    ),
    _to_author(  # the author wrote the preferences
        "BERTH-214",
        "preferences that have no effect",
        text="all preferred node affinity terms violate what is required here, so none has an effect; remove or change them",
    ),
    _to_platform(  # the flavors of the platform team's queue must carry what is judged and not written
        "BERTH-215",
        "a queue places the pod",
        text="{constraints:and} is checked but not written for {actor:and}; set it in the queue's flavors",
    ),
    _to_author(  # the author asks for what no known machine has
        "BERTH-217",
        "no known node type fits",
        nothing="no known node type has everything that the pod requests: it may stay Pending",
        slice="no machine of {platforms:or} has {name}, a slice of {models:and}; {there:;}",
        none_like_it="{platform} has no similar slice",
        no_slices="{platform} has no GPU with MIG",
        nearest="nearest: {name} ({machine})",
        nearest_by_label="nearest: {key}={profile} ({machine})",
    ),
    _to_platform(  # the platform team's grant is missing
        "BERTH-218",
        "a toleration that was not granted",
        text="toleration {taint} of {policies} is not added: no ClusterGPUPolicy allows it (allow.tolerations)",
    ),
    _to_platform(  # its default or catalog names a taint that no pod may tolerate
        "BERTH-219",
        "a toleration that is never added",
        text="toleration {key} is not added: its taint marks nodes that no workload may use",
    ),
    _to_author(  # the author asked for a whole GPU, and gets a slice; the edit is counted
        "BERTH-220",
        "a MIG slice instead of a GPU",
        of_edits=True,
        text="{where}: {old}: 1 {became}, {size}; for a whole GPU, annotate the pod {annotation}: none (default of {policies:and})",
        containers="{path} (and {more} more)",
        renamed="became {resource}: 1",
        labelled="is now one MIG slice {profile}",
        models="{gigabytes} GB of {models:or}",
        more_models="{gigabytes} GB of {model} or another model",
    ),
    _to_author(  # the author named no nodes, and gets some only; the edit is counted
        "BERTH-221",
        "nodes that a default chose",
        of_edits=True,
        template="the pod selects no nodes, so it only gets those of GPUNodeTemplate {template}; for others, set {selector} {key} (default"
        " of {policies:and})",
        machine="the pod selects no GPU, so it only gets {constraints:and}; for another, set {selector} {key}: {value} (default"
        " of {policies:and})",
    ),
    _to_author(  # the author wrote another grace period, or none; the edit is counted
        "BERTH-222",
        "a grace period that was raised",
        of_edits=True,
        text="{path} {former} is raised to {seconds}: at least {least} is required here; to choose it yourself, set {seconds} or more"
        " (required by {policies})",
        service="{path} {former} is raised to {seconds}: at least {least} is required here; to choose it yourself, set {seconds} or more,"
        " or opt out with the pod annotation {annotation}: grace (required by {policies})",
        opted_out="{path} {former} is raised to {seconds}: at least {least} is required here; to choose it yourself, set {seconds} or more;"
        " {annotation}: grace applies only to services (required by {policies})",
    ),
    _to_author(  # the author wrote what keeps the pod waiting for ever, and the scheduler says it to nobody who looks
        "BERTH-223",
        "a pod that no node can run",
        tainted="no node can run the pod: {where} have taint {taints:and}, which is not tolerated{pools}; tolerate it in {path}",
        labelled="no node can run the pod: {path} requires {asked}, but {where} {found}{pools}; change or remove it",
        too_many="no node can run the pod: it requests {need} {resource}, but no {places} has more than {most}; request {most} or fewer per"
        " pod",
        none_offered="no node can run the pod: no {places} has {resource}; request {offered:or}, or ask the platform team for such nodes",
        nothing_offered="no node can run the pod: no {places} has {resource}; ask the platform team for such nodes",
        not_together="no node can run the pod: no {places} has {devices} together; split them over several pods",
        node="node",
        node_or_pool="node and no NodePool",
        such_nodes="nodes with {devices}",
        made="nodes of NodePool {pool} with {devices}",
        no_pool_either=", and no NodePool creates others",
        nothing_more="",
        compared="{key} {operator} {values}",
        there="{key}",
        value="{values:or}",
        has="have {value}",
        has_not="have no such label",
    ),
    _to_author(  # the author's memory limit now has two users, and the kernel ends the container at it
        "BERTH-224",
        "shared memory that counts against the memory limit",
        of_edits=True,
        text='container "{container}" gets {size} of memory at {at}, which counts against its memory limit {limit}; raise the limit,'
        " or mount your own volume there (default of {policies:and})",
    ),
    _to_platform(  # the platform team's default does not do what it says
        "BERTH-225",
        "a run-time default that does not apply as written",
        runtime_expected="default maxRuntime {given} does not apply: the author expects a longer run ({annotation})",
        runtime_clipped="default maxRuntime {given} is clipped to what policies require: {most}",
        volume_there="default sharedMemory does not apply: the pod has a volume {volume} that is not in memory",
        class_not_allowed="default priorityClass {name} does not apply: no ClusterGPUPolicy allows it here (allow.priorityClasses)",
    ),
    _to_author(  # Kubernetes ends the author's run at a time that the author has not written
        "BERTH-226",
        "a time limit that was added",
        of_edits=True,
        text="the pod sets no {path}, so it is stopped after {most}; set your own, and save checkpoints (required by {policies:and})",
        shorter="the pod is stopped after {most}, the maximum here, which is before the time in {annotation}; save"
        " checkpoints, and continue in a new pod (required by {policies:and})",
    ),
    _to_platform(  # the platform team's default leaves the pod without a queue
        "BERTH-227",
        "a default queue that does not apply",
        queue_not_required="default queue {queue} of {system} does not apply: it is not a required queue",
        queue_and_claims="default queue {queue} of {system} does not apply: {system} denies pods with resource claims",
        of_the_workload="default queue {queue} is not written to the pod: {system} reads it from the owning workload ({key})",
    ),
    _to_author(  # the author's word is ignored in silence by the scheduler that reads it
        "BERTH-228",
        "a value that a scheduler ignores",
        near='{path} is "{value}", which is unknown and ignored; did you mean "{near}"?',
        known_words='{path} is "{value}", which is unknown and ignored; write {values:or}, or remove it',
    ),
    _to_author(  # a machine's network stays idle, or the pod asks for what its machine does not have
        "BERTH-229",
        "network devices that are not requested",
        "skipped",
        text="the pod gets every GPU of its machine but no network device: its possible machines have different ones ({kinds});"
        " select one instance type (default of {policies:and})",
    ),
    _to_platform(  # the platform team's catalog lacks the name: what is required of it is not judged as it is meant
        "BERTH-230",
        "an accelerator that is not in the catalog",
        text="pods request {name}, which is not in the catalog, so the strictest rules apply; list it in --catalog FILE, under resources or"
        " notAccelerators",
    ),
    _to_author(  # the author's claim gets a narrower device than it asks for, and may wait for it
        "BERTH-241",
        "devices that a default chose",
        of_edits=True,
        chosen="{request} selects no device, so it only gets {constraints:and}; for another, write a selector (default of {policies:and})",
    ),
    _to_platform(  # what it requires is not in force on these devices, and only another driver or a catalog can tell them apart
        "BERTH-242",
        "a constraint that a DRA driver can't express",
        "inexpressible",
        text="{constraints:and} is not written to {request}: driver {driver} does not publish it",
        models="{constraints:and} is not written to {request}: the names of {models} in driver {driver} are unknown (draDrivers of"
        " --catalog)",
    ),
    _to_author(  # the author chose the spelling, nobody tells that Karpenter passes over it, and the other one works
        "BERTH-243",
        "a claim that Karpenter creates no node for",
        text="no node has such devices, and Karpenter creates none for a claim, so the pod waits; request {resource}: {count} in"
        " resources.limits instead{served}",
        by_class=' (DRA also serves it: DeviceClass "{device_class}")',
        by_plugin=", served by a device plugin or a DeviceClass with that extendedResourceName",
    ),
    _to_author(  # Kueue holds a workload for ever and says so in an object of its own alone
        "BERTH-244",
        "a workload that its queue can't place",
        no_queue_near='{path} is "{queue}", not a known LocalQueue in namespace {namespace}: it waits forever; write "{near}"',
        no_queue_others='{path} is "{queue}", not a known LocalQueue in namespace {namespace}: it waits forever; write {there:or}',
        no_queue='{path} is "{queue}", and namespace {namespace} has no LocalQueue: it waits forever; run: kubectl get localqueues -A',
        no_cluster_queue="LocalQueue {queue} uses ClusterQueue {cluster}, which is not known: it waits forever;"
        " run: kubectl get clusterqueues",
        stopped="{which} is stopped (spec.stopPolicy: {policy}): it waits until that is None; other queues: "
        "kubectl get localqueues -n {namespace}",
        another_namespace="ClusterQueue {cluster} of queue {queue} excludes namespace {namespace} (spec.namespaceSelector): "
        "it waits forever; name another queue: kubectl get localqueues -n {namespace}",
        not_covered="queue {queue} ({cluster}) covers no {resource}: it waits forever, unless Kueue's configuration maps it; "
        "request {covered:or}, or add it to the ClusterQueue",
        nothing_covered="queue {queue} ({cluster}) covers no {resource}: it waits forever, unless Kueue's configuration maps it; "
        "add it to the ClusterQueue",
        no_flavor="no flavor of queue {queue} ({cluster}) fits {template}, so it never runs: {why}; {fix}",
        no_flavor_others="no flavor of queue {queue} ({cluster}) fits {template}, so it never runs: {why}; {fix}. {others:;}",
        pods_denied="queue {queue} ({cluster}) admits {template}, but its pods never run: {why}; {fix}",
        pods_denied_others="queue {queue} ({cluster}) admits {template}, but its pods never run: {why}; {fix}. {others:;}",
        too_much="queue {queue} ({cluster}) has at most {most} {resource}, and {template} requests {need}: it waits forever; request less,"
        " or name another queue: kubectl get localqueues -n {namespace}",
        too_much_shared="queue {queue} ({cluster}) has at most {most} {resource} with cohort {cohort}, and {template} requests {need}: it"
        " waits forever, unless a Cohort object adds quota; request less, or name another queue",
        queue_full="queue {queue} ({cluster}) has {free} of {most} {resource} free, and {template} requests {need}: it waits until others"
        " end; to see them, run: kubectl get workloads.kueue.x-k8s.io -n {namespace}",
        over_limit="{field} of queue {queue} of {system} allows at most {most} {resource}, and {template} requests {need} before it starts:"
        " it waits forever; request less, or name another queue",
        limit_full="{field} of queue {queue} of {system} has {free} of {most} {resource} free, and {template} requests {need} before it"
        " starts: it waits until others end; request less, or name another queue",
        wrong_flavor="queue {queue} ({cluster}) may place {template} where its pods never run: {why}; "
        "set a nodeSelector that only a suitable flavor matches; to see flavors, run: kubectl get resourceflavors -o yaml",
        taint="{flavor} has taint {taint}",
        label="{flavor} has {key}={value}",
        policy="{policies:and} denies them in {flavor} ({code})",
        place="policies select nodes outside {flavor}",
        gone="flavor {flavor} is not known",
        tolerate="tolerate it in the template, or in the flavor",
        ask_for="select that, or name another queue: kubectl get localqueues -n {namespace}",
        other_queue="name another queue: kubectl get localqueues -n {namespace}",
        make_flavor="run: kubectl get resourceflavors",
    ),
    _to_author(  # the author's label or annotation is ignored in silence by the scheduler that it is meant for
        "BERTH-246",
        "a key that a scheduler ignores",
        near="{path} is not a key of {reader}, which ignores it; did you mean {right}?",
        place="{path} is ignored: {reader} does not read it there; write {right}",
    ),
    _to_author(  # the author's run is lost with the first machine that the cloud takes back
        "BERTH-247",
        "a run that the first interruption ends",
        of_edits=True,
        no_retry="{field} is 0, so one spot interruption ends the run; raise it, or {stays} (policy: {policies:and})",
        no_strategy="{field} is not set, so one spot interruption ends the run; set it, or {stays} (policy: {policies:and})",
        failing_rule="{field} lets one spot interruption fail the Job; first ignore the pod condition DisruptionTarget, or {stays}"
        " (policy: {policies:and})",
        stays="set {selector} {key}: {value}",
        stay="select on-demand nodes",
    ),
    _to_author(  # the API server denies the pods of a workload that it has accepted, and says so in events alone
        "BERTH-251",
        "a ResourceQuota that denies the pods",
        never="ResourceQuota {name} allows {hard} {resource} in all, and a pod has {need}, so none is ever created; request less,"
        " or ask for a larger quota",
        exceeded="ResourceQuota {name} has {left} of {hard} {resource} left, and a pod has {need}, so none is created until other pods"
        " end; request less, or run: kubectl describe resourcequota {name}",
        never_claimed="ResourceQuota {name} allows {hard} {resource} in all, and the claims of a pod have {need}, so it waits forever for"
        " them; request less, or ask for a larger quota",
        exceeded_claimed="ResourceQuota {name} has {left} of {hard} {resource} left, and the claims of a pod have {need}, so it waits until"
        " others are deleted; request less, or run: kubectl describe resourcequota {name}",
        some="ResourceQuota {name} has room for {room} of {pods} pods ({need} {resource} each, {hard} in all); run fewer, or ask for a"
        " larger quota",
        unset='ResourceQuota {name} has {resource}, so every container must set it, and "{container}" does not: its pods are denied;'
        " set {path}",
    ),
    _to_author(  # as above
        "BERTH-252",
        "a LimitRange that denies the pods",
        max="LimitRange {name} allows at most {hard} {resource}, and {whose} has {need}: its pods are denied; request less, or ask for a"
        " larger maximum",
        max_unset="LimitRange {name} has a maximum of {resource} ({hard}), and {whose} sets no limit: its pods are denied; set {path}",
        min="LimitRange {name} requires at least {hard} {resource}, and {whose} has {need}: its pods are denied; set {path} to {hard}",
        min_unset="LimitRange {name} requires at least {hard} {resource}, and {whose} requests none: its pods are denied; set {path}",
        ratio="LimitRange {name} bounds limit by request of {resource}: {whose} has a limit of {need}, and its request allows {hard}: its"
        " pods are denied; raise the request",
        ratio_unset="LimitRange {name} bounds limit by request of {resource}, and {whose} does not set both: its pods are denied;"
        " set {path}",
        default="LimitRange {name} gives containers without a limit {hard} {resource}, less than {whose} requests ({need}): its pods are"
        " denied; set {path}",
        pod="the pod",
    ),
    _to_author(  # the pod runs without a GPU
        "BERTH-256",
        "a fractional GPU without its scheduler",
        fact="only KAI and Run:ai read {path}, but {scheduler} places the pod, so it gets no GPU; set {field} to {kai}",
    ),
)
