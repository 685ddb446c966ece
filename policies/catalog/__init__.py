"""What is known about GPUs, MIG profiles, machines, platforms and workloads: types and look-ups.

The data is ``catalog.yaml``; ``parse`` reads it, and the files laid over it, into a ``Catalog``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Literal

from policies.catalog.model_codes import codes_of
from policies.catalog.resources import Measure as Measure
from policies.catalog.resources import Resource as Resource
from policies.catalog.resources import ResourceKind as ResourceKind
from policies.catalog.resources import ResourcePattern as ResourcePattern
from policies.catalog.slice_shares import slice_shares
from policies.catalog.workload import Workload as Workload
from policies.kept import Kept
from policies.policy import Capacity, Sharing, Taint

_MOST_NAMES = 4096
"""Resource names whose answer is kept: authors choose names, so it is bounded; a cluster has tens."""
LONGEST_NAME = 253 + len("/") + 63
"""characters of a resource name, label or annotation key (k8s.io/apimachinery IsQualifiedName). A mutating webhook is called before
anybody has counted them; of a longer one nothing is kept."""
_MOST_SIGNED = 2**20
"""bytes: some thousand owners and labels that tell a workload; a cluster has tens"""

Possible = tuple[str | None, ...]
"""The values a label may have on such a node. None: the label may be absent. ``"*"``: present, any value; ``"n1-*"``: any that begins so.
``"?"``: present, with a value the catalog does not know (the unknown-model row)."""

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfile:
    name: str
    """``1g.10gb``, ``1g.10gb+me``, ``1g.24gb-me``: as nvidia-smi writes it"""
    count: int
    """most instances of this profile alone on one GPU"""
    compute: int
    """compute slices (the ``1`` of 1g)"""
    memory_gb: int
    """nominal, the number in the name"""
    attribute: str | None = None
    """``+me``, ``+me.all``, ``+gfx``, ``-me``"""
    usable_mib: int | None = None
    """only where the figure is verified"""

    @property
    def resource(self) -> str:
        """Extended resource under the mixed strategy: ``+`` becomes ``.`` ([device-plugin] internal/rm)."""
        return "nvidia.com/mig-" + self.name.replace("+", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    model: str
    """the catalog name that policies use: ``A100-40GB``, ``T4``"""
    groups: tuple[str, ...] = ()
    """wider names for it: ``A100``"""
    vendor: str
    """nvidia, amd, intel, habana"""
    family: str
    """architecture as in nvidia.com/gpu.family (``ada-lovelace``), or the vendor's (``cdna3``)"""
    memory_gb: int | None = None
    """nominal, of one GPU"""
    memory_mib: int | None = None
    products: tuple[str, ...] = ()
    """values of the vendor's product label, newest driver first"""
    compute_capability: str | None = None
    mig: tuple[MigProfile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """One instance type (on GKE N1: one accelerator; type None)."""

    cloud: str
    """aws, azure, gcp"""
    type: str | None
    types: tuple[str, ...] = ()
    """where ``type`` is None: what the types that may carry it begin with, each ending in ``*``; empty: any type"""
    family: str | None
    """what ``instanceFamilies`` names: ``p4d``, ``a2``"""
    model: str
    """a Gpu.model"""
    count: int | None
    """devices; None: any"""
    resource: str
    """``nvidia.com/gpu``"""
    attributes: Mapping[str, str]
    """further label values by attribute name: gpuName, memoryMiB, category, generation, size, manufacturer, accelerator"""
    usd_per_hour: float | None = None
    """indicative, on demand, of the whole machine; Catalog.prices says where and when"""
    not_on: tuple[str, ...] = ()
    """platforms of this cloud that never make it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A node selector requirement to write."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way in which a node shares its GPUs, and what its labels then say."""

    sharing: Sharing
    vendor: str
    resource: str | None = None
    """None: the machine's own (``nvidia.com/gpu``); may hold ``{profile}`` (with '+' as '.')"""
    strategy: Literal["mixed", "single"] | None = None
    """per MIG profile: only where the cluster's --mig-strategy is this. None with per_profile: always (GKE)"""
    per_profile: bool = False
    suffix: str = ""
    """appended to the product label: ``-SHARED``, ``-MIG-{profile}``"""
    labels: Mapping[str, Possible]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingScheme:
    variants: tuple[Variant, ...]
    exclude: Mapping[Sharing, tuple[Expression, ...]]
    """what keeps a pod off nodes of that sharing; all that R leaves out are written together"""
    only: Mapping[Sharing, tuple[Expression, ...]]
    """what picks nodes of that sharing alone (written where the keys are known before boot, or on gfd)"""
    slice_key: str | None = None
    """label whose value is the MIG profile (GKE partition size), where a slice is chosen by label"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    name: str
    cloud: str | None
    """whose MachineTypes; None: machines are the product labels of every GPU (gfd)"""
    creates_nodes: bool
    makes_slices: bool
    """False for Karpenter and EKS Auto: no node is ever made for a slice or a ``.shared`` name"""
    slices: tuple[str, ...] = ()
    """resource names that such nodes exist for although makes_slices is False (a --catalog overlay says so)"""
    anchor: str
    """a label that every node of this platform has and no other platform's node"""
    anchor_value: str = ""
    """its value on such nodes, where others have the label with another; empty: any"""
    not_with: tuple[str, ...] = ()
    """labels that say of a node with the anchor that somebody else made it"""
    type_prefix: str = ""
    """what stands before the cloud's own names of instance types on its nodes: ``ml.``"""
    node_classes: tuple[str, ...] = ()
    """API groups of the node classes (a NodePool's spec.template.spec.nodeClassRef) that this platform's NodePools name"""
    gpu_pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """label key -> the values that machines with GPUs have: a NodePool that requires others makes none"""
    labels: Mapping[str, str]
    """label key -> attribute, known before the node exists (on gfd: all there is)"""
    after_boot: Mapping[str, str]
    """label key -> attribute, written only once the node runs (GFD on clouds)"""
    machine_keys: tuple[tuple[str, ...], ...]
    """key lists that may say the machine axis, best first"""
    capacity: Mapping[Capacity, Mapping[str, str]]
    """which capacity types exist here, and their labels"""
    capacity_keys: tuple[str, ...]
    sharing: str
    """name of a SharingScheme"""
    protect_durations: bool = False
    """True where karpenter.sh/do-not-disrupt understands a duration (provider 1.12 or later)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorTaint:
    vendor: str
    taint: Taint
    """value "" here means: tolerate with Exists"""
    platforms: tuple[str, ...] = ()
    """empty: on all"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """One way to say 'do not disrupt this pod'."""

    where: Literal["annotations", "labels"]
    key: str
    value: str
    durations: bool
    """True if the value may be a Go duration where Platform.protect_durations"""
    platforms: tuple[str, ...]
    """empty: on all"""
    any_value: bool = False
    """True if it is not known how the value is compared: whatever is not plainly false protects"""
    only_judged: bool = False
    """True if it is held to a maximum and never written: an older name, or a second place for the same word"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraceCap:
    """What cuts a grace period. ``capacity`` spot: the interruption notice; None: the autoscaler's own cap."""

    name: str
    """``EC2 spot interruption notice``"""
    seconds: int
    capacity: Capacity | None
    platforms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    gpus: tuple[Gpu, ...]
    machines: tuple[MachineType, ...]
    platforms: Mapping[str, Platform]
    schemes: Mapping[str, SharingScheme]
    resources: tuple[ResourcePattern, ...]
    whole: Mapping[str, str]
    """vendor -> resource name of one whole device: nvidia -> nvidia.com/gpu"""
    misspellings: Mapping[str, str]
    """wrong resource name -> right one"""
    not_accelerators: tuple[str, ...]
    """names and globs that look like accelerators and are not: nvidia.com/gpumem"""
    measures: tuple[Measure, ...]
    """first match wins"""
    taints: tuple[AcceleratorTaint, ...]
    spot_taints: tuple[AcceleratorTaint, ...]
    never_tolerate: tuple[str, ...]
    """taint keys, globs allowed"""
    protections: tuple[Protection, ...]
    workloads: tuple[Workload, ...]
    grace_caps: tuple[GraceCap, ...]
    excluded_namespaces: tuple[str, ...]
    dra_drivers: Mapping[str, str]
    """DRA driver -> vendor: gpu.nvidia.com -> nvidia"""
    foreign_schedulers: Mapping[str, str]
    """schedulerName -> system: kai-scheduler -> KAI"""

    label_aliases: Mapping[str, str] = field(default_factory=dict)
    """older label key -> the one that nodes carry it beside, with the same value: beta.kubernetes.io/instance-type"""
    podless_groups: frozenset[str] = frozenset()
    """API groups of which no kind makes pods, besides Kubernetes' own"""
    accelerator_domains: tuple[str, ...] = ()
    """of resource names, whose owners make nothing but accelerators: cambricon.com"""
    other_drivers: frozenset[str] = frozenset()
    """DRA drivers, and names of their classes, whose devices are no accelerators: network, compute domains, cpu"""
    retired_families: tuple[str, ...] = ()
    """instance families that clusters may still have and no table of machines lists any more: known by name alone"""
    prices: Mapping[str, str] = field(default_factory=dict)
    """cloud -> where and when its MachineType.usd_per_hour hold: ``AWS us-east-1, on demand, 2026-07-20``"""
    other_platforms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """label vocabulary of platforms without machines here: platform -> label key -> what it says"""
    _seen: dict[str, Resource | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    """answers of ``resource``, bounded"""
    _signed: Kept[tuple[Workload, ...]] = field(default_factory=lambda: Kept(_MOST_SIGNED), init=False, repr=False, compare=False)
    """answers of ``workloads_signed``, bounded"""
    signatures: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)
    """keys of the labels that tell a workload"""
    codes: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)
    """words that tell one model or instance family from another: ``h100``, ``p5``. A name with one of them is never taken for another's"""
    slice_shares: Mapping[str, tuple[Fraction, Fraction]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """MIG profile as in a resource name -> (least, most) part of a GPU that it is, by compute or memory, over the models that have it"""

    def __post_init__(self) -> None:
        keys = frozenset(label.partition("=")[0] for workload in self.workloads for label in workload.labels)
        object.__setattr__(self, "signatures", keys)
        object.__setattr__(self, "codes", codes_of(self.model_names, self.machine_families()))
        object.__setattr__(self, "slice_shares", slice_shares(self.gpus))

    def workloads_signed(self, owner: tuple[str, str], labels: tuple[tuple[str, str | None], ...]) -> tuple[Workload, ...]:
        """The workloads whose pods have this controlling owner (API group, kind), or one of these labels (key, value)."""
        key = owner, labels
        found = self._signed.get(key)
        if found is None:
            carried = {*(name for name, _ in labels), *(f"{name}={value}" for name, value in labels if value is not None)}
            found = tuple(w for w in self.workloads if owner in w.owners or not carried.isdisjoint(w.labels))
            self._signed.keep(key, found, 1024 + sum(map(len, owner)) + sum(len(name) + len(value or "") + 128 for name, value in labels))
        return found

    def resource(self, name: str) -> Resource | None:
        """What this resource name is; None if it is no accelerator. A literal name beats a pattern, in the catalog's order."""
        if len(name) > LONGEST_NAME:
            return self._read(name)
        if name not in self._seen:
            if len(self._seen) >= _MOST_NAMES:
                self._seen.clear()
            self._seen[name] = self._read(name)
        return self._seen[name]

    def _read(self, name: str) -> Resource | None:
        for known in sorted(self.resources, key=lambda resource: resource.name is None):
            if found := known.pattern.fullmatch(name):
                groups = found.groupdict()
                profile, parts = known.profile or groups.get("profile"), known.parts.get(groups.get("mode") or "")
                return Resource(name=name, vendor=known.vendor, kind=known.kind, profile=profile, parts=parts)
        return None

    def measure(self, name: str) -> Measure | None:
        """Of what a resource by this name is so much; None where each is a device, or none at all."""
        return next((one for one in self.measures if fnmatchcase(name, one.name)), None)

    def is_accelerator_driver(self, driver: str) -> bool:
        """Whether the devices of this DRA driver count. Those of one that nobody listed may be accelerators, so they do."""
        return driver not in self.other_drivers

    @property
    def renamed(self) -> Mapping[str, str]:
        """MIG profile, as nvidia-smi writes it -> the resource name that this cluster gives it instead of the usual one."""
        names = {_spoken(known.profile): known.name for known in self.resources if known.kind == "mig" and known.profile}
        return {profile: name for profile, name in names.items() if name is not None}

    def models(self, name: str) -> tuple[Gpu, ...]:
        """The GPUs that a model name or a group name means; empty if unknown."""
        return tuple(gpu for gpu in self.gpus if name == gpu.model or name in gpu.groups)

    @property
    def model_names(self) -> tuple[str, ...]:
        """Every name that ``models`` knows: models, then groups, in the catalog's order."""
        groups = (group for gpu in self.gpus for group in gpu.groups)
        return tuple(dict.fromkeys([*(gpu.model for gpu in self.gpus), *groups]))

    @property
    def families(self) -> tuple[str, ...]:
        """Every architecture, in the catalog's order."""
        return tuple(dict.fromkeys(gpu.family for gpu in self.gpus))

    @property
    def vendors(self) -> tuple[str, ...]:
        """Every maker of GPUs, in the catalog's order."""
        return tuple(dict.fromkeys(gpu.vendor for gpu in self.gpus))

    def machine_families(self) -> frozenset[str]:
        """Every instance family of every cloud, by the names too that platforms with a prefix have for them (``ml.p5``)."""
        found = {(machine.cloud, machine.family) for machine in self.machines if machine.family is not None}
        prefixed = {f"{p.type_prefix}{family}" for p in self.platforms.values() for cloud, family in found if cloud == p.cloud}
        return frozenset((*(family for _, family in found), *prefixed))


def _spoken(profile: str) -> str:
    """``1g.10gb.me``, as in resource names, as nvidia-smi says it: ``1g.10gb+me``."""
    return re.sub(r"gb\.(?=[a-z])", "gb+", profile)
