"""The three kinds of object as types: the content of a policy, before any catalog or pod is considered.

``policies.objects.definition`` defines the fields; ``policies.objects.parse`` makes these objects from
documents.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from catalog.platforms import Capacity, Sharing
from kube.labels import LabelSelector
from kube.taints import Taint, TolerationPattern
from policies.verdict import Mode

GROUP = "berth.dev"
API_VERSION = f"{GROUP}/v1alpha1"
CONTROLLER = f"{GROUP}/berth"
"""The reporting component of Berth's Events."""
REGISTRATION = "zz-berth"
"""The name of both webhook configurations (``registration.configurations``)."""

QueueSystem = Literal["kueue", "kai", "volcano", "slurm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InNotIn:
    """``{in: [...]}`` or ``{notIn: [...]}`` or both. An empty tuple means that the field is absent."""

    in_: tuple[str, ...] = ()
    not_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """``{min: 40, max: 80}``: whole numbers, both inclusive. None means that the field is absent."""

    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRuns:
    """The capacity types for runs longer than ``over`` seconds."""

    over: int
    capacity: tuple[Capacity, ...]
    unknown_is_long: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLimit:
    max: int | None = None
    one_of: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MigDefault:
    """A MIG slice by size; exactly one of the two is set. ``slice_gb``: the nominal GB in the profile name.
    ``usable_mib``: the least usable memory in MiB, which a profile without a known amount never satisfies."""

    slice_gb: int | None = None
    usable_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    namespace_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None
    workloads: tuple[str, ...] = ()
    gpus: Bounds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFields:
    """The machine fields, the same in ``require`` and ``default``."""

    families: InNotIn | None = None
    models: InNotIn | None = None
    """Catalog names (``A100-40GB``) or groups (``A100``), as written."""
    instance_families: InNotIn | None = None
    gpu_memory: Bounds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueName:
    """A queue of one queue system; exactly one of the systems is set."""

    kueue: str | None = None
    """A LocalQueue of Kueue's."""
    topology: str | None = None
    """With ``kueue``: a level of the Topology that the flavors of that queue have, as the key of its node label."""
    kai: str | None = None
    volcano: str | None = None
    slurm: str | None = None
    """A partition, by Slurm bridge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """The queues of each system in one of which a pod must be; ``*`` stands for any queue of that system."""

    kueue: tuple[str, ...] = ()
    kai: tuple[str, ...] = ()
    volcano: tuple[str, ...] = ()
    slurm: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Require:
    machine: MachineFields = MachineFields()
    capacity: tuple[Capacity, ...] = ()
    """As written. ``on-demand`` also admits reserved capacity, which ``policies.offers`` takes into
    account."""
    long_runs: LongRuns | None = None
    sharing: tuple[Sharing, ...] = ()
    gpus_per_pod: DeviceLimit | None = None
    requests_equal_limits: tuple[Literal["accelerators", "cpuAndMemory"], ...] = ()
    grace_min: int | None = None
    """In seconds: the minimum, to which /mutate raises the pod's grace period."""
    grace_max: int | None = None
    """In seconds."""
    protection_max: int | None = None
    """In seconds."""
    max_runtime: int | None = None
    """In seconds."""
    forbid_tolerations: tuple[TolerationPattern, ...] = ()
    queue: Queues | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    accelerator_taints: bool = False
    node_template: str | None = None
    machine: MachineFields = MachineFields()
    capacity: tuple[Capacity, ...] = ()
    long_runs: LongRuns | None = None
    mig: MigDefault | None = None
    grace: int | None = None
    """In seconds. The pod's grace period is raised to it, never lowered."""
    protect_for: int | Literal["Always"] | None = None
    """In seconds, or ``Always``."""
    tolerate: tuple[TolerationPattern, ...] = ()
    repair: tuple[Literal["accelerators"], ...] = ()
    max_runtime: int | None = None
    """In seconds."""
    shared_memory: int | None = None
    """In bytes."""
    runtime_class: str | None = None
    priority_class: str | None = None
    scheduler_name: str | None = None
    topology: str | None = None
    """The node label whose value pods of one workload should share."""
    network_devices: bool = False
    queue: QueueName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    node_templates: tuple[str, ...] = ()
    tolerations: tuple[TolerationPattern, ...] = ()
    priority_classes: tuple[str, ...] = ()


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
        """The id in messages: ``ClusterGPUPolicy/training`` or ``GPUPolicy/ml-team/own``."""
        return f"ClusterGPUPolicy/{self.name}" if self.namespace is None else f"GPUPolicy/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplate:
    """A GPUNodeTemplate. Its offers are those that have both its GPUs and its capacity; if it is chosen, its
    labels are written and its taints tolerated."""

    name: str
    vendors: tuple[str, ...] = ()
    machine: MachineFields = MachineFields()
    sharing: tuple[Sharing, ...] = ()
    """How its nodes share GPUs: this declares sliced or time-sliced nodes on a platform that creates none."""
    mig_profiles: tuple[str, ...] = ()
    """Profiles that its nodes carry (``1g.10gb``), with ``sharing`` MIG."""
    capacity: tuple[Capacity, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySet:
    """All valid objects, sorted by kind, namespace and name."""

    policies: tuple[Policy, ...] = ()
    templates: tuple[NodeTemplate, ...] = field(default=())
