"""The spec of a ClusterGPUPolicy and a GPUPolicy: the pods that it matches, and what it requires, defaults
and allows."""

from __future__ import annotations

from types import MappingProxyType

from catalog.shapes.scalars import Name, PatternText, Whole, WordChoice
from catalog.shapes.structs import Field, Items, Shape, Struct
from policies import policy
from policies.objects import parts as part
from policies.objects import validation as between
from policies.objects.field_types import Kind, Memory, SliceSize, Span, TemplateName, UsableMemory
from policies.verdict import MODES

# --- how a pod runs, whatever node it is on -----------------------------------------------------------------------------

_CLASS = PatternText(wanted="the name of a class", pattern=part.DNS_SUBDOMAIN)
_SCHEDULER = PatternText(wanted="the name of a scheduler", pattern=part.DNS_SUBDOMAIN)

_RUNNING_REQUIRED = (
    Field(
        name="maxRuntime", store="max_runtime", merge="least", shape=Span(), example="48h",
        description="Maximum `activeDeadlineSeconds`. A pod with a longer deadline is denied; a pod without a deadline gets this one. A"
        " Deployment replaces a pod that reaches its deadline.",
    ),
)  # fmt: skip
_RUNNING_DEFAULTS = (
    Field(
        name="maxRuntime", store="max_runtime", shape=Span(), example="24h",
        description="The `activeDeadlineSeconds` of a pod that has none, unless its `berth.dev/expected-duration` is longer. "
        "Not for services, unless the policy names the workload.",
    ),
    Field(
        name="sharedMemory", store="shared_memory", merge="most", shape=Memory(), example="8Gi",
        description="Size of a memory volume at `/dev/shm`, for GPU containers without a volume there. The content counts "
        "against the container's memory limit.",
    ),
    Field(
        name="runtimeClass", store="runtime_class", shape=_CLASS, example="nvidia",
        description="The `runtimeClassName` of a pod that has none. The RuntimeClass must exist.",
    ),
    Field(
        name="priorityClass", store="priority_class", shape=_CLASS, example="gpu-batch",
        description="The `priorityClassName` of a pod that has none. The PriorityClass must exist. In a GPUPolicy only a class that"
        " `allow.priorityClasses` grants.",
    ),
    Field(
        name="schedulerName", store="scheduler_name", shape=_SCHEDULER, example="gpu-packing",
        description="The scheduler of a pod that names none, such as the profile that `berth export scheduler` prints. If it "
        "is not running, the pod stays Pending.",
    ),
    Field(
        name="topology", shape=part.KEY, example="topology.kubernetes.io/zone",
        description="A node label, such as the platform's block or rack. Pods of one workload prefer nodes with the same value, unless"
        " they have pod affinity.",
    ),
    Field(
        name="networkDevices", store="network_devices", example="All",
        shape=WordChoice(values=("All",), means=MappingProxyType({"All": True})),
        description="A container that requests every GPU of its machine also requests all network devices (`vpc.amazonaws.com/efa: 32` on a"
        " p5.48xlarge). Only if every machine that the pod may run on has that many. Needs their device plugin.",
    ),
)  # fmt: skip
_RUNNING_ALLOWED = (
    Field(
        name="priorityClasses", store="priority_classes", merge="union", shape=Items(of=_CLASS), example="[gpu-batch]",
        description="Priority classes that GPUPolicies may set.",
    ),
)  # fmt: skip

# --- queues -------------------------------------------------------------------------------------------------------------

_QUEUE = PatternText(wanted="the name of a queue", pattern=part.DNS_SUBDOMAIN, most=63)
_PARTITION = PatternText(wanted="the name of a partition", pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", most=63)
_ANY_QUEUE = PatternText(wanted="the name of a queue, or *", pattern=rf"^(\*|{part.DNS_SUBDOMAIN[1:-1]})$", most=63)
_ANY_PARTITION = PatternText(wanted="the name of a partition, or *", pattern=r"^(\*|[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$", most=63)
"""The names of Kueue's and KAI's queues are label values too, of 63 characters at most."""
_SYSTEMS = ("kueue", "kai", "volcano", "slurm")

_ONE = Struct(
    build=policy.QueueName,
    one_of=_SYSTEMS,
    rules=(between.topology_needs_kueue,),
    fields=(
        Field(
            name="kueue", shape=_QUEUE, example="team-a",
            description="LocalQueue of Kueue, as label `kueue.x-k8s.io/queue-name` of the workload that Kueue manages, not of its pods.",
        ),
        Field(
            name="topology", shape=part.KEY, example="cloud.provider.com/topology-block",
            description="With `kueue`: the topology level at which pods of one GPU template prefer to be together, as annotation"
            " `kueue.x-k8s.io/podset-preferred-topology` of the template. Every flavor for these pods must have this level;"
            " otherwise Kueue never admits the workload.",
        ),
        Field(
            name="kai", shape=_QUEUE, example="team-a",
            description="Queue of KAI, as label `kai.scheduler/queue`, with KAI's scheduler.",
        ),
        Field(
            name="volcano", shape=_QUEUE, example="gpu",
            description="Queue of Volcano, as annotation `scheduling.volcano.sh/queue-name`, with Volcano's scheduler.",
        ),
        Field(
            name="slurm", shape=_PARTITION, example="gpu",
            description="Partition of Slurm. Berth writes it as an annotation on a new workload or a pod without an owner, and sets Slurm"
            " bridge's scheduler. The time limit comes from `berth.dev/expected-duration`, or else from `activeDeadlineSeconds`.",
        ),
    ),
)  # fmt: skip


def _several(name: str, shape: Shape, example: str, description: str) -> Field:
    return Field(name=name, shape=Items(of=shape, most=64), example=example, description=description)


_SOME = Struct(
    build=policy.Queues,
    any_of=_SYSTEMS,
    fields=(
        _several(
            "kueue", _ANY_QUEUE, "[team-a]",
            "LocalQueues of Kueue, or `*` for any. If Kueue suspends the workload, as it does Jobs, a controller in the"
            " catalog's `podMakers` must create its pods. Other pods are admitted only with Kueue's scheduling gate, if the server has"
            " `--queues kueue`.",
        ),
        _several("kai", _ANY_QUEUE, "[team-a]", "Queues of KAI, or `*` for any."),
        _several("volcano", _ANY_QUEUE, "[gpu]", "Queues of Volcano, or `*` for any."),
        _several("slurm", _ANY_PARTITION, "[gpu]", "Partitions of Slurm, by Slurm bridge, or `*` for any."),
    ),
)  # fmt: skip

_QUEUE_REQUIRED = Field(
    name="queue", shape=_SOME, example="{kai: [team-a]}",
    description="Queues that GPU pods must use. A pod that names a node, another scheduler, another queue or no queue is "
    "denied. With several policies, a queue must be in all of them.",
)  # fmt: skip
_QUEUE_DEFAULT = Field(
    name="queue", shape=_ONE, example="{kai: team-a}",
    description="Queue of a GPU pod that names neither a queue nor a scheduler. It takes precedence over `schedulerName`. If "
    "the queue system is not running, the pod stays Pending.",
)  # fmt: skip


_CLUSTER: tuple[Kind, ...] = ("ClusterGPUPolicy",)
_NO_SPACE = r"^[^\s\x0b]+$"
"""The vertical tab is named because ``\\s`` matches it in Python's patterns but not in Go's."""

_MATCH = Struct(
    build=lambda exclude=(), **given: (policy.Match(**given), exclude),
    fields=(
        Field(
            name="namespaceSelector", store="namespace_selector", attribute="match.namespace_selector", kinds=_CLUSTER,
            shape=part.SELECTOR,
            description="Namespaces by their labels. If not set: all.", example="{matchLabels: {team: research}}",
        ),
        Field(
            name="podSelector", store="pod_selector", attribute="match.pod_selector", shape=part.SELECTOR, words="labelled {}",
            description="Pods by their labels. In a ClusterGPUPolicy not with `require`.",
            example="{matchLabels: {tier: batch}}",
        ),
        Field(
            name="workloads", attribute="match.workloads", words="of {}", shape=Items(of=Name(noun="workload", known="workloads")),
            description="Pods by their workload. In a ClusterGPUPolicy not with `require`.",
            example="[Job, PyTorchJob]",
        ),
        Field(
            name="gpus", attribute="match.gpus", shape=part.bounds(0, "devices", (8, 8), part.devices), words="that ask for {}",
            description="Pods by the number of accelerators that their containers and claims request. A slice counts as one.",
            example="{min: 8}",
        ),
        Field(
            name="exclude", attribute="", kinds=_CLUSTER, example="{users: [system:serviceaccount:ci:runner]}",
            description="Requesting users whose pods the policy skips, for break-glass access.",
            shape=Struct(
                build=lambda users: users,
                fields=(
                    Field(
                        name="users", attribute="exclude_users", required=True,
                        shape=Items(of=PatternText(wanted="a user name", pattern=_NO_SPACE)),
                        description="Full user names, as in `request.userInfo.username`.", example="[system:serviceaccount:ci:runner]",
                    ),
                ),
            ),
        ),
    ),
)  # fmt: skip

_GPUS_PER_POD = Struct(
    build=policy.DeviceLimit,
    any_of=("max", "oneOf"),
    rules=(between.some_count_is_left,),
    fields=(
        Field(name="max", merge="least", shape=Whole(least=1, unit="devices"), description="At most this many devices.", example="8"),
        Field(
            name="oneOf",
            store="one_of",
            merge="common",
            shape=Items(of=Whole(least=1, unit="devices")),
            description="Exactly one of these numbers of devices.",
            example="[1, 2, 4, 8]",
        ),
    ),
)

_REQUIRE = Struct(
    build=part.with_grace(part.with_machine(policy.Require)),
    fields=(
        *part.machine("gpuMemory"),
        part.capacity("Capacity types that a pod may run on. `on-demand` includes reserved."),
        part.long_runs("Capacity types for pods that run long, within `capacity`."),
        Field(
            name="sharing", shape=Items(of=part.SHARING), example="[Exclusive, MIG]",
            description="How a GPU may be shared: not at all (`Exclusive`), as a hardware slice (`MIG`), or in turns (`TimeSliced`).",
        ),
        Field(
            name="gpusPerPod", store="gpus_per_pod", shape=_GPUS_PER_POD, example="{max: 8, oneOf: [1, 2, 4, 8]}",
            description="How many whole accelerators the containers of a pod may request together.",
        ),
        Field(
            name="requestsEqualLimits", store="requests_equal_limits", merge="union", example="[accelerators]",
            shape=Items(of=WordChoice(values=("accelerators", "cpuAndMemory"))),
            description="Resources whose requests must equal limits. `cpuAndMemory` gives the QoS class Guaranteed.",
        ),
        Field(
            name="gracePeriod", store="grace", attribute="", shape=part.GRACE, example="{min: 10m, max: 1h}",
            description="Bounds for `terminationGracePeriodSeconds`, the time for a last checkpoint.",
        ),
        Field(
            name="protection", store="protection_max", attribute="", example="{max: 24h}",
            description="Bounds for how long a pod may protect its node from disruption.",
            shape=Struct(
                build=lambda most: most,
                fields=(
                    Field(
                        name="max", store="most", attribute="protection_max", merge="least", required=True,
                        shape=Span(), description="At most this long.", example="24h",
                    ),
                ),
            ),
        ),
        Field(
            name="tolerations", store="forbid_tolerations", attribute="", example="{forbid: [{key: team, value: other}]}",
            description="Bounds for what pods may tolerate.",
            shape=Struct(
                build=lambda forbid: forbid,
                fields=(
                    Field(
                        name="forbid", attribute="forbid_tolerations", merge="union", required=True,
                        shape=part.TOLERATIONS, example="[{key: team, value: other}]",
                        description="Taints that a pod must not tolerate, even by a toleration of all taints.",
                    ),
                ),
            ),
        ),
        *_RUNNING_REQUIRED,
        _QUEUE_REQUIRED,
    ),
)  # fmt: skip

_MIG = Struct(
    build=policy.MigDefault,
    one_of=("slice", "usableMemory"),
    fields=(
        Field(
            name="slice", store="slice_gb", shape=SliceSize(), example="10gb",
            description="The nominal size, as in the profile's name. Berth uses the profile with the fewest compute slices.",
        ),
        Field(
            name="usableMemory", store="usable_mib", shape=UsableMemory(), example="9.5Gi",
            description="Minimum memory that the pod can actually use. Berth uses only profiles whose usable memory is verified.",
        ),
    ),
)  # fmt: skip

_DEFAULT = Struct(
    build=part.with_machine(policy.Default),
    fields=(
        Field(
            name="acceleratorTaints", store="accelerator_taints", words="acceleratorTaints", example="Tolerate",
            shape=WordChoice(values=("Tolerate",), means=MappingProxyType({"Tolerate": True})),
            description="Tolerates the taints of the requested vendor's GPU nodes in the catalog (`nvidia.com/gpu`, on AKS `sku=gpu`).",
        ),
        Field(
            name="nodeTemplate", store="node_template", shape=TemplateName(), example="a100-training",
            description="The GPUNodeTemplate whose nodes pods get.",
        ),
        *part.machine("gpuMemory"),
        part.capacity("Capacity types to use."),
        part.long_runs("Capacity types to use for pods that run long, instead of `capacity`."),
        Field(
            name="mig", shape=_MIG, example="{slice: 10gb}",
            description="A MIG slice instead of one whole GPU, where a known node offers it or a GPUNodeTemplate declares it.",
        ),
        Field(
            name="gracePeriod", store="grace", merge="most", shape=Span(), example="30m",
            description="Raises a `terminationGracePeriodSeconds` of 30, Kubernetes' default. Any other value is kept. " + part.GRANTED,
        ),
        Field(
            name="protectFor", store="protect_for", merge="most", shape=Span(word="Always"), example="12h",
            description="Asks autoscalers not to disrupt the pod's node for this long. `Always`: as long as the pod exists.",
        ),
        Field(
            name="tolerate", merge="union", shape=Items(of=part.toleration(part.TAINT_KEY)),
            description="Additional taints to tolerate.", example="[{key: team, value: research, effect: NoSchedule}]",
        ),
        Field(
            name="repair", merge="union", shape=Items(of=WordChoice(values=("accelerators",))), example="[accelerators]",
            description="Sets a request that differs from its limit to that limit, and a missing limit to the request.",
        ),
        *_RUNNING_DEFAULTS,
        _QUEUE_DEFAULT,
    ),
)  # fmt: skip

_ALLOW = Struct(
    build=policy.Allow,
    fields=(
        Field(
            name="nodeTemplates", store="node_templates", merge="union", shape=Items(of=TemplateName()), example="[a100-training]",
            description="GPUNodeTemplates that GPUPolicies and pod annotations may choose.",
        ),
        Field(
            name="tolerations", merge="union", shape=part.TOLERATIONS, example="[{key: team}]",
            description="Tolerations that GPUPolicies may add.",
        ),
        *_RUNNING_ALLOWED,
    ),
)  # fmt: skip


def _policy_spec(match: tuple[policy.Match, tuple[str, ...]] = (policy.Match(), ()), **given: object) -> dict[str, object]:
    return {"match": match[0], "exclude_users": match[1], **given}


POLICY = Struct(
    build=_policy_spec,
    rules=(between.authors_do_not_choose,),
    fields=(
        Field(
            name="mode", shape=WordChoice(values=MODES), default="Audit", example="Audit",
            description="`Audit` records outcomes, `Warn` also warns authors, `Enforce` edits and denies pods. `--max-mode` caps it.",
        ),
        Field(
            name="match", attribute="", shape=_MATCH, example="{gpus: {min: 8}}",
            description="The pods that the policy applies to. All conditions must match. If not set: all accelerator pods in scope.",
        ),
        Field(
            name="require", shape=_REQUIRE, example="{families: {in: [hopper]}}",
            description="Requirements for pods. A pod that violates them is denied. Those of all matching policies apply, to "
            "the final pod.",
        ),
        Field(
            name="default", shape=_DEFAULT, example="{acceleratorTaints: Tolerate}",
            description="Values for what the pod, its annotations and narrower scopes do not set, always within `require`."
            " If a pod mentions node labels that no active platform knows, no default chooses among its nodes.",
        ),
        Field(
            name="allow", shape=_ALLOW, kinds=_CLUSTER, example="{nodeTemplates: [a100-training]}",
            description="What GPUPolicy defaults and pod annotations may add. If not set: nothing. The grants of all policies add up.",
        ),
    ),
)  # fmt: skip
