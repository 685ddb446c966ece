"""A guardrail of each kind, in a namespace of its own; for each a pod that it must deny, and that pod's honest twin."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.workloads import NVIDIA, TOLERATION, gpus, pod
from tests.testcluster.controlplane.api import Raw

LABEL = "ways.berth.dev/guard"
"""Of a namespace: the guardrail that holds in it"""
SPOT_NODE, T4_NODE, H100_NODE, FORBIDDEN_NODE, AMD_NODE, GKE_NODE, P5_NODE = (
    "ways-spot", "ways-t4", "ways-h100", "ways-forbidden", "ways-amd", "ways-gke", "ways-p5",
)  # fmt: skip
CPU = "ways-cpu"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
FORBIDDEN: Raw = {"key": "team", "operator": "Equal", "value": "other", "effect": "NoSchedule"}
ALLOWED: Raw = {**FORBIDDEN, "value": "mine"}
EQUAL_CPU: Raw = {"cpu": "1", "memory": "1Gi"}
PLACES = ("BERTH-117", "BERTH-121", "BERTH-122", "BERTH-124", "BERTH-125", "BERTH-126")
"""What a pod is denied with for where it would run"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrail:
    """``require`` and ``match`` as a ClusterGPUPolicy has them. ``outside``, ``inside``: known nodes, for those about places."""

    name: str
    codes: tuple[str, ...]
    require: Raw
    match: Raw = field(default_factory=dict)
    wrong: Raw
    right: Raw
    outside: str = ""
    inside: str = H100_NODE

    def policy(self) -> Raw:
        match = {**self.match, "namespaceSelector": {"matchLabels": {LABEL: self.name}}}
        spec = {"mode": "Enforce", "match": match, "require": self.require, "default": {"acceleratorTaints": "Tolerate"}}
        return {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": f"ways-{self.name}"}, "spec": spec}


def selecting(key: str, value: str, **spec: Any) -> Raw:
    """A pod of one GPU with a nodeSelector."""
    return pod(nodeSelector={key: value}, **spec)


def with_(made: Raw, **spec: Any) -> Raw:
    """The same pod with these fields of its spec."""
    return {**made, "spec": {**made["spec"], **spec}}


def marked(made: Raw, *, labels: Raw | None = None, annotations: Raw | None = None, **metadata: Any) -> Raw:
    """The same pod with these labels, annotations and other metadata beside its own."""
    changed = deepcopy(made)
    changed["metadata"] |= metadata
    for name, added in (("labels", labels), ("annotations", annotations)):
        if added:
            changed["metadata"][name] = {**changed["metadata"].get(name, {}), **added}
    return changed


def annotated(**annotations: str) -> Raw:
    """A pod of one GPU that says something."""
    return pod(metadata={"annotations": annotations})


def asking(*amounts: Raw) -> Raw:
    """A pod with a container for each of these ``resources``."""
    containers = [{"name": f"c{i}", "image": "registry.example/main:1", "resources": one} for i, one in enumerate(amounts)]
    return pod(containers=containers)


def _guaranteed(cpu: str = "1") -> Raw:
    return {"requests": {"cpu": "1", "memory": "1Gi", NVIDIA: "1"}, "limits": {"cpu": cpu, "memory": "1Gi", NVIDIA: "1"}}


PRODUCT, CAPACITY = "nvidia.com/gpu.product", "karpenter.sh/capacity-type"
ON_T4, ON_H100 = selecting(PRODUCT, "Tesla-T4"), selecting(PRODUCT, "NVIDIA-H100-80GB-HBM3")

COUNTS = (
    Guardrail(name="max", codes=("BERTH-111", "BERTH-118"), require={"gpusPerPod": {"max": 4}}, wrong=pod(gpus(8)), right=pod(gpus(4))),
    Guardrail(
        name="one-of",
        codes=("BERTH-112", "BERTH-118"),
        require={"gpusPerPod": {"oneOf": [1, 2, 4]}},
        wrong=pod(gpus(3)),
        right=pod(gpus(2)),
    ),
)
CAPS = (
    Guardrail(
        name="grace",
        codes=("BERTH-141",),
        require={"gracePeriod": {"max": "10m"}},
        wrong=pod(terminationGracePeriodSeconds=3600),
        right=pod(terminationGracePeriodSeconds=600),
    ),
    Guardrail(
        name="protection",
        codes=("BERTH-142",),
        require={"protection": {"max": "24h"}},
        wrong=pod(metadata={"annotations": {DO_NOT_DISRUPT: "true"}}),
        right=pod(metadata={"annotations": {DO_NOT_DISRUPT: "12h"}}),
    ),
    Guardrail(
        name="forbid",
        codes=("BERTH-131",),
        require={"tolerations": {"forbid": [{"key": "team", "value": "other"}]}},
        wrong=pod(tolerations=[TOLERATION, FORBIDDEN]),
        right=pod(tolerations=[TOLERATION, ALLOWED]),
    ),
    Guardrail(
        name="ranges",
        codes=("BERTH-131",),
        require={"tolerations": {"forbid": [{"key": "level", "value": "7"}]}},
        wrong=pod(tolerations=[TOLERATION, {"key": "level", "value": "7"}]),
        right=pod(tolerations=[TOLERATION, {"key": "level", "value": "6"}]),
    ),
    Guardrail(
        name="large",
        codes=("BERTH-141",),
        match={"gpus": {"min": 8}},
        require={"gracePeriod": {"max": "10m"}},
        wrong=pod(gpus(8), terminationGracePeriodSeconds=3600),
        right=pod(gpus(4), terminationGracePeriodSeconds=3600),
    ),
    Guardrail(
        name="small",
        codes=("BERTH-141",),
        match={"gpus": {"max": 4}},
        require={"gracePeriod": {"max": "10m"}},
        wrong=pod(terminationGracePeriodSeconds=3600),
        right=pod(terminationGracePeriodSeconds=600),
    ),
)
EQUALITY = (
    Guardrail(
        name="equal",
        codes=("BERTH-101", "BERTH-102"),
        require={"requestsEqualLimits": ["accelerators"]},
        wrong=pod(
            {
                "requests": {"deviceclass.resource.kubernetes.io/ways-gpu": "1"},
                "limits": {"deviceclass.resource.kubernetes.io/ways-gpu": "2"},
            }
        ),
        right=pod(gpus(1, "deviceclass.resource.kubernetes.io/ways-gpu")),
    ),
    Guardrail(
        name="guaranteed",
        codes=("BERTH-103",),
        require={"requestsEqualLimits": ["cpuAndMemory"]},
        wrong=pod(_guaranteed("2")),
        right=pod(_guaranteed()),
    ),
)
PLACED = (
    Guardrail(name="families", codes=PLACES, require={"families": {"in": ["hopper"]}}, wrong=ON_T4, right=ON_H100, outside=T4_NODE),
    Guardrail(name="models", codes=PLACES, require={"models": {"in": ["H100-80GB"]}}, wrong=ON_T4, right=ON_H100, outside=T4_NODE),
    Guardrail(
        name="instances",
        codes=PLACES,
        require={"instanceFamilies": {"in": ["p5"]}},
        wrong=selecting("karpenter.k8s.aws/instance-family", "g4dn"),
        right=selecting("karpenter.k8s.aws/instance-family", "p5"),
        outside=SPOT_NODE,
        inside=P5_NODE,
    ),
    Guardrail(name="memory", codes=PLACES, require={"gpuMemory": {"min": 80}}, wrong=ON_T4, right=ON_H100, outside=T4_NODE),
    Guardrail(
        name="capacity",
        codes=PLACES,
        require={"capacity": ["on-demand"]},
        wrong=selecting(CAPACITY, "spot"),
        right=selecting(CAPACITY, "on-demand"),
        outside=SPOT_NODE,
    ),
    Guardrail(
        name="long-runs",
        codes=PLACES,
        require={"capacity": ["spot", "on-demand"], "longRuns": {"over": "2h", "capacity": ["on-demand"], "unknownIsLong": True}},
        wrong=selecting(CAPACITY, "spot"),
        right=marked(selecting(CAPACITY, "spot"), annotations={"berth.dev/expected-duration": "1h"}),
        outside=SPOT_NODE,
    ),
    Guardrail(
        name="sharing",
        codes=PLACES,
        require={"sharing": ["Exclusive"]},
        wrong=pod(gpus(1, "nvidia.com/mig-1g.10gb")),
        right=pod(),
        outside="a100-shared",
    ),
)


def queued(system: str, queue: str, made: Raw | None = None, **spec: Any) -> Raw:
    """The pod, of one GPU unless it is given, in a queue of this system."""
    where, key, value = QUEUES[system]
    given = with_(marked(made or pod(), **{where: {key: queue}}), **value, **spec)
    return given if system != "kueue" else marked(given, labels={MANAGED: "true"})


KUEUE_GATE = {"name": "kueue.x-k8s.io/admission"}
MANAGED = "kueue.x-k8s.io/managed"
QUEUES: dict[str, tuple[str, str, Raw]] = {
    "kai": ("labels", "kai.scheduler/queue", {"schedulerName": "kai-scheduler"}),
    "volcano": ("annotations", "scheduling.volcano.sh/queue-name", {"schedulerName": "volcano"}),
    "slurm": ("annotations", "slurmjob.slinky.slurm.net/partition", {"schedulerName": "slurm-bridge-scheduler"}),
    "kueue": ("labels", "kueue.x-k8s.io/queue-name", {"schedulingGates": [KUEUE_GATE]}),
}
"""Where each system reads the queue of a pod, and what else is in the spec of its pods."""
IN_QUEUES = tuple(
    Guardrail(name=system, codes=("BERTH-144",), require={"queue": {system: ["team-a"]}}, wrong=pod(), right=queued(system, "team-a"))
    for system in QUEUES
)
OTHERS = (
    Guardrail(
        name="slices", codes=PLACES, require={"sharing": ["MIG"]}, wrong=pod(gpus(1, "nvidia.com/gpu.shared")),
        right=pod(gpus(1, "nvidia.com/mig-1g.10gb")), outside=H100_NODE, inside="a100-mig",
    ),
    Guardrail(
        name="not-hopper", codes=PLACES, require={"families": {"notIn": ["hopper"]}}, wrong=ON_H100,
        right=ON_T4, outside=H100_NODE, inside=T4_NODE,
    ),
    Guardrail(
        name="runtime", codes=("BERTH-143",), require={"maxRuntime": "1h"}, wrong=pod(activeDeadlineSeconds=7200),
        right=pod(activeDeadlineSeconds=3600),
    ),
)  # fmt: skip
GUARDRAILS = (*COUNTS, *CAPS, *EQUALITY, *PLACED, *IN_QUEUES, *OTHERS)
BY_NAME = {guardrail.name: guardrail for guardrail in GUARDRAILS}
