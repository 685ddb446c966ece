"""The fields about how a pod runs, whatever node it is on: its longest time, shared memory, classes, scheduler
and neighbours."""

from __future__ import annotations

from types import MappingProxyType

from catalog.shapes.scalars import PatternText, WordChoice
from catalog.shapes.structs import Field, Items
from policies.objects import parts as part
from policies.objects.field_types import Memory, Span

_CLASS = PatternText(wanted="the name of a class", pattern=part.DNS_SUBDOMAIN)
_SCHEDULER = PatternText(wanted="the name of a scheduler", pattern=part.DNS_SUBDOMAIN)

REQUIRED = (
    Field(
        name="maxRuntime", store="max_runtime", merge="least", shape=Span(), example="48h",
        description="Maximum `activeDeadlineSeconds`. A pod with a longer deadline is denied; a pod without a deadline gets this one. A"
        " Deployment replaces a pod that reaches its deadline.",
    ),
)  # fmt: skip
DEFAULTS = (
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
ALLOWED = (
    Field(
        name="priorityClasses", store="priority_classes", merge="union", shape=Items(of=_CLASS), example="[gpu-batch]",
        description="Priority classes that GPUPolicies may set.",
    ),
)  # fmt: skip
