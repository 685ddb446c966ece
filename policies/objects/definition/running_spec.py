"""The fields about how a pod runs, whatever node it is on: its longest time, shared memory, classes, scheduler
and neighbours."""

from __future__ import annotations

from types import MappingProxyType

from policies.objects import parts as part
from policies.objects.field_types import Choice, Field, Items, Memory, Span, Text

_CLASS = Text(wanted="the name of a class", pattern=part.DNS_SUBDOMAIN)
_SCHEDULER = Text(wanted="the name of a scheduler", pattern=part.DNS_SUBDOMAIN)

REQUIRED = (
    Field(
        name="maxRuntime", store="max_runtime", merge="least", shape=Span(), example="48h",
        about="The longest `activeDeadlineSeconds`: a longer one is denied, and a pod that has none gets this one. Kubernetes ends a pod"
        " that runs longer; a Deployment's is made anew.",
    ),
)  # fmt: skip
DEFAULTS = (
    Field(
        name="maxRuntime", store="max_runtime", shape=Span(), example="24h",
        about="The `activeDeadlineSeconds` of a pod that has none, and no longer `berth.dev/expected-duration`. Not for services, unless"
        " the policy names the workload.",
    ),
    Field(
        name="sharedMemory", store="shared_memory", merge="most", shape=Memory(), example="8Gi",
        about="A volume in memory of this size at `/dev/shm` for containers with GPUs that mount none there: 64 MiB, the container"
        " runtime's own, end NCCL and data loaders. What is in it counts against the container's memory limit.",
    ),
    Field(
        name="runtimeClass", store="runtime_class", shape=_CLASS, example="nvidia",
        about="The `runtimeClassName` of a pod that has none. The RuntimeClass must exist: without it the API server denies such pods.",
    ),
    Field(
        name="priorityClass", store="priority_class", shape=_CLASS, example="gpu-batch",
        about="The `priorityClassName` of a pod that has none. The PriorityClass must exist: without it the API server denies such pods."
        " In a GPUPolicy only what `allow.priorityClasses` grants.",
    ),
    Field(
        name="schedulerName", store="scheduler_name", shape=_SCHEDULER, example="gpu-packing",
        about="The scheduler of a pod that names none, such as the profile that `berth export scheduler` prints. Without that scheduler"
        " such pods stay Pending.",
    ),
    Field(
        name="topology", shape=part.KEY, example="topology.kubernetes.io/zone",
        about="The node label of which pods of one workload prefer the same value, such as the platform's block or rack: written as"
        " preferred pod affinity, where the pod has none.",
    ),
    Field(
        name="networkDevices", store="network_devices", example="All",
        shape=Choice(values=("All",), means=MappingProxyType({"All": True})),
        about="A container that takes every GPU of its machine asks for all network devices of that machine too"
        " (`vpc.amazonaws.com/efa: 32` of a p5.48xlarge), where each machine that the pod may run on has as many. Their device plugin"
        " must run there.",
    ),
)  # fmt: skip
ALLOWED = (
    Field(
        name="priorityClasses", store="priority_classes", merge="union", shape=Items(of=_CLASS), example="[gpu-batch]",
        about="Priority classes that GPUPolicies may give.",
    ),
)  # fmt: skip
