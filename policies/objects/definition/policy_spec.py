"""The spec of a ClusterGPUPolicy and a GPUPolicy: the pods that it matches, and what it requires, defaults
and allows."""

from __future__ import annotations

from types import MappingProxyType

from policies import policy
from policies.objects import parts as part
from policies.objects import validation as between
from policies.objects.definition import queue_spec as queue
from policies.objects.definition import running_spec as running
from policies.objects.field_types import Choice, Field, Items, Kind, Name, SliceSize, Span, Struct, Template, Text, UsableMemory, Whole
from policies.verdict import MODES

_CLUSTER: tuple[Kind, ...] = ("ClusterGPUPolicy",)
_NO_SPACE = r"^[^\s\x0b]+$"
"""The vertical tab is named because ``\\s`` matches it in Python's patterns but not in Go's."""

_MATCH = Struct(
    build=lambda exclude=(), **given: (policy.Match(**given), exclude),
    fields=(
        Field(
            name="namespaceSelector", store="namespace_selector", attribute="match.namespace_selector", kinds=_CLUSTER,
            shape=part.SELECTOR,
            about="Namespaces by their labels; left out: all.", example="{matchLabels: {team: research}}",
        ),
        Field(
            name="podSelector", store="pod_selector", attribute="match.pod_selector", shape=part.SELECTOR, words="labelled {}",
            about="Pods by their labels. In a ClusterGPUPolicy only without `require`, because authors write labels.",
            example="{matchLabels: {tier: batch}}",
        ),
        Field(
            name="workloads", attribute="match.workloads", words="of {}", shape=Items(of=Name(noun="workload", known="workloads")),
            about="Pods by the workload they belong to. In a ClusterGPUPolicy only without `require`, because authors write owners.",
            example="[Job, PyTorchJob]",
        ),
        Field(
            name="gpus", attribute="match.gpus", shape=part.bounds(0, "devices", (8, 8), part.devices), words="that ask for {}",
            about="Pods by how many accelerators they ask for, all containers and claims together; a slice counts as one.",
            example="{min: 8}",
        ),
        Field(
            name="exclude", attribute="", kinds=_CLUSTER, example="{users: [system:serviceaccount:ci:runner]}",
            about="Whose pods the policy leaves alone: a break-glass, by who asks, never by what the pod says.",
            shape=Struct(
                build=lambda users: users,
                fields=(
                    Field(
                        name="users", attribute="exclude_users", required=True,
                        shape=Items(of=Text(wanted="a user name", pattern=_NO_SPACE)),
                        about="`request.userInfo.username`, whole.", example="[system:serviceaccount:ci:runner]",
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
        Field(name="max", merge="least", shape=Whole(least=1, unit="devices"), about="At most this many devices.", example="8"),
        Field(
            name="oneOf",
            store="one_of",
            merge="common",
            shape=Items(of=Whole(least=1, unit="devices")),
            about="Exactly one of these counts.",
            example="[1, 2, 4, 8]",
        ),
    ),
)

_REQUIRE = Struct(
    build=part.with_grace(part.with_machine(policy.Require)),
    fields=(
        *part.machine("gpuMemory"),
        part.capacity("Which capacity a pod may land on; `on-demand` includes reserved."),
        part.long_runs("Which capacity a pod that runs long may land on, of what `capacity` leaves."),
        Field(
            name="sharing", shape=Items(of=part.SHARING), example="[Exclusive, MIG]",
            about="How the GPU may be shared: whole (`Exclusive`), a hardware slice (`MIG`), or in turns (`TimeSliced`).",
        ),
        Field(
            name="gpusPerPod", store="gpus_per_pod", shape=_GPUS_PER_POD, example="{max: 8, oneOf: [1, 2, 4, 8]}",
            about="How many whole accelerators a pod may ask for, all containers together.",
        ),
        Field(
            name="requestsEqualLimits", store="requests_equal_limits", merge="union", example="[accelerators]",
            shape=Items(of=Choice(values=("accelerators", "cpuAndMemory"))),
            about="Where requests must equal limits; `cpuAndMemory` gives QoS class Guaranteed.",
        ),
        Field(
            name="gracePeriod", store="grace", attribute="", shape=part.GRACE, example="{min: 10m, max: 1h}",
            about="Bounds `terminationGracePeriodSeconds`, the time that a pod has for a last checkpoint when it is stopped.",
        ),
        Field(
            name="protection", store="protection_max", attribute="", example="{max: 24h}",
            about="Bounds how long a pod may keep its node from being disrupted.",
            shape=Struct(
                build=lambda most: most,
                fields=(
                    Field(
                        name="max", store="most", attribute="protection_max", merge="least", required=True,
                        shape=Span(), about="At most this long.", example="24h",
                    ),
                ),
            ),
        ),
        Field(
            name="tolerations", store="forbid_tolerations", attribute="", example="{forbid: [{key: team, value: other}]}",
            about="Bounds what pods may tolerate.",
            shape=Struct(
                build=lambda forbid: forbid,
                fields=(
                    Field(
                        name="forbid", attribute="forbid_tolerations", merge="union", required=True,
                        shape=part.TOLERATIONS, example="[{key: team, value: other}]",
                        about="Taints that a pod must not tolerate; a toleration of everything counts.",
                    ),
                ),
            ),
        ),
        *running.REQUIRED,
        queue.REQUIRED,
    ),
)  # fmt: skip

_MIG = Struct(
    build=policy.MigDefault,
    one_of=("slice", "usableMemory"),
    fields=(
        Field(
            name="slice", store="slice_gb", shape=SliceSize(), example="10gb",
            about="The nominal size, the number in the profile's name. The profile with the fewest compute slices is taken.",
        ),
        Field(
            name="usableMemory", store="usable_mib", shape=UsableMemory(), example="9.5Gi",
            about="Memory that the pod can really use, at least. Only profiles whose figure is verified count.",
        ),
    ),
)  # fmt: skip

_DEFAULT = Struct(
    build=part.with_machine(policy.Default),
    fields=(
        Field(
            name="acceleratorTaints", store="accelerator_taints", words="acceleratorTaints", example="Tolerate",
            shape=Choice(values=("Tolerate",), means=MappingProxyType({"Tolerate": True})),
            about="Tolerate the taints of GPU nodes of the asked vendor, as the catalog has them (`nvidia.com/gpu`, on AKS `sku=gpu`).",
        ),
        Field(
            name="nodeTemplate", store="node_template", shape=Template(), example="a100-training",
            about="The GPUNodeTemplate whose nodes are wanted.",
        ),
        *part.machine("gpuMemory"),
        part.capacity("Which capacity is wanted."),
        part.long_runs("Which capacity is wanted for a pod that runs long, in place of `capacity`."),
        Field(name="mig", shape=_MIG, about="A MIG slice in place of one whole GPU, where slices exist.", example="{slice: 10gb}"),
        Field(
            name="gracePeriod", store="grace", merge="most", shape=Span(), example="30m",
            about="Raises a `terminationGracePeriodSeconds` of 30, Kubernetes' own; any other was written by somebody. " + part.GRANTED,
        ),
        Field(
            name="protectFor", store="protect_for", merge="most", shape=Span(word="Always"), example="12h",
            about="Asks autoscalers not to disrupt the pod's node for this long; `Always`: for as long as the pod is there.",
        ),
        Field(
            name="tolerate", merge="union", shape=Items(of=part.toleration(part.TAINT_KEY)),
            about="Further taints to tolerate.", example="[{key: team, value: research, effect: NoSchedule}]",
        ),
        Field(
            name="repair", merge="union", shape=Items(of=Choice(values=("accelerators",))), example="[accelerators]",
            about="Mends requests that differ from limits: the request becomes the limit, or the limit the request where it is missing.",
        ),
        *running.DEFAULTS,
        queue.DEFAULT,
    ),
)  # fmt: skip

_ALLOW = Struct(
    build=policy.Allow,
    fields=(
        Field(
            name="nodeTemplates", store="node_templates", merge="union", shape=Items(of=Template()), example="[a100-training]",
            about="Templates that GPUPolicies and pod annotations may choose.",
        ),
        Field(
            name="tolerations", merge="union", shape=part.TOLERATIONS, example="[{key: team}]",
            about="Tolerations that GPUPolicies may add.",
        ),
        *running.ALLOWED,
    ),
)  # fmt: skip


def _policy_spec(match: tuple[policy.Match, tuple[str, ...]] = (policy.Match(), ()), **given: object) -> dict[str, object]:
    return {"match": match[0], "exclude_users": match[1], **given}


POLICY = Struct(
    build=_policy_spec,
    rules=(between.authors_do_not_choose,),
    fields=(
        Field(
            name="mode", shape=Choice(values=MODES), default="Audit", example="Audit",
            about="What the policy does: record only (`Audit`), record and warn (`Warn`), or act (`Enforce`). `--max-mode` caps it.",
        ),
        Field(
            name="match", attribute="", shape=_MATCH, example="{gpus: {min: 8}}",
            about="Which pods the policy is for. All that is given must hold; left out: every accelerator pod in scope.",
        ),
        Field(
            name="require", shape=_REQUIRE, example="{families: {in: [hopper]}}",
            about="What a pod must be, or it is denied. The constraints of all policies hold together, and are judged on the final pod.",
        ),
        Field(
            name="default", shape=_DEFAULT, example="{acceleratorTaints: Tolerate}",
            about="Fills in only where the pod, its annotations and narrower scopes are silent, and always inside `require`."
            " No default chooses among the nodes of a pod that says anything about nodes which no platform in force knows.",
        ),
        Field(
            name="allow", shape=_ALLOW, kinds=_CLUSTER, example="{nodeTemplates: [a100-training]}",
            about="What GPUPolicy defaults and pod annotations may bring in. Nothing without it; those of all policies add up.",
        ),
    ),
)  # fmt: skip
