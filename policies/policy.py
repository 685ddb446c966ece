"""The three kinds of object, typed: what a policy says, before it meets a catalog or a pod.

Types only: ``definition`` says which fields there are, ``policy_parse`` makes these from documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policies.verdict import Mode

GROUP = "berth.dev"
API_VERSION = f"{GROUP}/v1alpha1"

Capacity = Literal["spot", "on-demand", "reserved"]
Sharing = Literal["Exclusive", "MIG", "TimeSliced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InNotIn:
    """``{in: [...]}`` or ``{notIn: [...]}`` or both; an empty tuple is 'not given'."""

    in_: tuple[str, ...] = ()
    not_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """``{min: 40, max: 80}``, whole numbers, both inclusive; None is 'not given'."""

    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelExpression:
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
        return self.key not in labels


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """A Kubernetes label selector; an empty one matches everything."""

    match_labels: tuple[tuple[str, str], ...] = ()
    match_expressions: tuple[LabelExpression, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """Labels that it looks at."""
        return frozenset((*(key for key, _ in self.match_labels), *(expression.key for expression in self.match_expressions)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """As apimachinery's labels.Selector: NotIn and DoesNotExist hold where the key is missing."""
        return all(labels.get(key) == value for key, value in self.match_labels) and all(
            expression.holds(labels) for expression in self.match_expressions
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TolerationPattern:
    """A toleration to add, to forbid or to allow: None is 'any' in forbid and allow, absent in tolerate."""

    key: str
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None

    def __str__(self) -> str:
        """``team=other:NoSchedule``, as kubectl writes taints."""
        value = f"={self.value}" if self.value is not None else ""
        return f"{self.key}{value}" + (f":{self.effect}" if self.effect else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRuns:
    """``over`` in seconds."""

    over: int
    capacity: tuple[Capacity, ...]
    unknown_is_long: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLimit:
    max: int | None = None
    one_of: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MigDefault:
    """Exactly one of the two. ``slice_gb``: nominal GB of the profile name. ``usable_mib``: at least, strict."""

    slice_gb: int | None = None
    usable_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    namespace_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None
    workloads: tuple[str, ...] = ()
    gpus: Bounds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine fields, the same in ``require`` and ``default``."""

    families: InNotIn | None = None
    models: InNotIn | None = None
    """Catalog names (``A100-40GB``) or groups (``A100``), as written."""
    instance_families: InNotIn | None = None
    gpu_memory: Bounds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Require:
    machine: Machine = Machine()
    capacity: tuple[Capacity, ...] = ()
    """As written; ``on-demand`` includes reserved, which ``offers`` knows."""
    long_runs: LongRuns | None = None
    sharing: tuple[Sharing, ...] = ()
    gpus_per_pod: DeviceLimit | None = None
    requests_equal_limits: tuple[Literal["accelerators", "cpuAndMemory"], ...] = ()
    grace_min: int | None = None
    """seconds: a floor, to which /mutate raises"""
    grace_max: int | None = None
    """seconds"""
    protection_max: int | None = None
    """seconds"""
    forbid_tolerations: tuple[TolerationPattern, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    accelerator_taints: bool = False
    node_template: str | None = None
    machine: Machine = Machine()
    capacity: tuple[Capacity, ...] = ()
    long_runs: LongRuns | None = None
    mig: MigDefault | None = None
    grace: int | None = None
    """seconds, at least"""
    protect_for: int | Literal["Always"] | None = None
    """seconds, or Always"""
    tolerate: tuple[TolerationPattern, ...] = ()
    repair: tuple[Literal["accelerators"], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    node_templates: tuple[str, ...] = ()
    tolerations: tuple[TolerationPattern, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A ClusterGPUPolicy (``namespace`` None) or a GPUPolicy."""

    name: str
    namespace: str | None = None
    mode: Mode = "Audit"
    match: Match = Match()
    exclude_users: tuple[str, ...] = ()
    require: Require = Require()
    default: Default = Default()
    allow: Allow = Allow()

    @property
    def id(self) -> str:
        """``ClusterGPUPolicy/training`` or ``GPUPolicy/ml-team/own``: how it is named in messages."""
        return f"ClusterGPUPolicy/{self.name}" if self.namespace is None else f"GPUPolicy/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplate:
    """A GPUNodeTemplate: as a bit set ``gpus`` AND ``capacity``; chosen, its labels are written, its taints tolerated."""

    name: str
    vendors: tuple[str, ...] = ()
    machine: Machine = Machine()
    sharing: tuple[Sharing, ...] = ()
    """What its nodes share: the way to say that a platform which makes no sliced or time-sliced nodes has them here."""
    mig_profiles: tuple[str, ...] = ()
    """Profiles that its nodes carry (``1g.10gb``), with ``sharing`` MIG."""
    capacity: tuple[Capacity, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySet:
    """Everything that was understood, sorted by kind, namespace and name."""

    policies: tuple[Policy, ...] = ()
    templates: tuple[NodeTemplate, ...] = field(default=())
