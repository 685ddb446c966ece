"""The catalog: all facts, and their look-ups."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from fractions import Fraction

from catalog.gpus import Gpu, MachineType
from catalog.platforms import (
    AcceleratorTaint,
    DevicePlugin,
    GpuLabel,
    GraceCap,
    InjectedContainer,
    Platform,
    Protection,
    SharingScheme,
    Words,
)
from catalog.published_devices import PublishedDevices
from catalog.reserved_keys import PLACES, ReservedKeys, Where
from catalog.resources import Measure, Resource, ResourcePattern
from catalog.workload import Between, Workload

Signature = tuple[tuple[str, str], tuple[tuple[str, str | None], ...]]
"""The controlling owner of a pod (API group, kind), and those of its labels that identify workloads (key, value)."""
_MOST_NAMES = 4096
"""The most resource names whose look-up is cached: authors choose names, so the cache is bounded; a
cluster has tens."""
LONGEST_NAME = 253 + len("/") + 63
"""Characters of a resource name, label or annotation key (k8s.io/apimachinery IsQualifiedName). A mutating
webhook is called before the API server has validated names, and the look-up of a longer one is not cached."""
_MOST_SIGNATURES, _LONGEST_SIGNATURE = 1024, 1024
"""The most owners and labels whose look-up is cached, and the most characters of one; a cluster has tens."""


_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    gpus: tuple[Gpu, ...]
    machines: tuple[MachineType, ...]
    platforms: Mapping[str, Platform]
    schemes: Mapping[str, SharingScheme]
    resources: tuple[ResourcePattern, ...]
    whole: Mapping[str, str]
    """Vendor -> resource name of one whole device: nvidia -> nvidia.com/gpu."""
    misspellings: Mapping[str, str]
    """Wrong resource name -> right one."""
    not_accelerators: tuple[str, ...]
    """Names and globs that look like accelerators and are not: nvidia.com/gpumem."""
    measures: tuple[Measure, ...]
    """The first match wins."""
    taints: tuple[AcceleratorTaint, ...]
    spot_taints: tuple[AcceleratorTaint, ...]
    arch_taints: tuple[AcceleratorTaint, ...]
    """Taints of nodes of an architecture, which is the taint's value."""
    never_tolerate: tuple[str, ...]
    """Taint keys; globs are allowed."""
    protections: tuple[Protection, ...]
    workloads: tuple[Workload, ...]
    grace_caps: tuple[GraceCap, ...]
    excluded_namespaces: tuple[str, ...]
    dra_drivers: Mapping[str, str]
    """DRA driver -> vendor: gpu.nvidia.com -> nvidia."""
    published: Mapping[str, PublishedDevices]
    """DRA driver -> what it publishes of its devices."""
    foreign_schedulers: Mapping[str, str]
    """schedulerName -> system: kai-scheduler -> KAI."""

    label_aliases: Mapping[str, str] = field(default_factory=dict)
    """Older label key -> the key of a label that nodes carry beside it with the same value:
    beta.kubernetes.io/instance-type."""
    between: tuple[Between, ...] = ()
    """Kinds between workloads and their pods."""
    podless_groups: frozenset[str] = frozenset()
    """API groups of which no kind makes pods, besides Kubernetes' own groups."""
    accelerator_domains: tuple[str, ...] = ()
    """Domains of resource names whose owners make nothing but accelerators: cambricon.com."""
    other_drivers: frozenset[str] = frozenset()
    """DRA drivers, and names of their classes, whose devices are no accelerators: network, compute
    domains, cpu."""
    gpu_labels: tuple[GpuLabel, ...] = ()
    """The first that a node has counts."""
    device_plugins: tuple[DevicePlugin, ...] = ()
    """The first match wins."""
    ignored_resources: Mapping[str, str] = field(default_factory=dict)
    """Name or glob of a resource that kube-scheduler is configured to leave to an extender, so that no node need list it -> whose
    extender."""
    retired_families: tuple[str, ...] = ()
    """Instance families that clusters may still have although no table of machines lists them any more:
    known by name alone."""
    workload_labels: tuple[str, ...] = ()
    """Labels whose value all pods of one workload share, the outermost first."""
    reserved_keys: tuple[ReservedKeys, ...] = ()
    """The labels and annotations that queue systems and sharing schedulers define; no prefix begins with another one."""
    words: tuple[Words, ...] = ()
    """What queue systems and sharing schedulers read of pods as one of a few words."""
    nouns: Mapping[str, str] = field(default_factory=dict)
    """Vendor -> what people call several of its devices: ``Neuron devices``."""
    injected_containers: tuple[InjectedContainer, ...] = ()
    """Containers that are in pods and in no manifest of their authors."""
    pod_makers: frozenset[str] = frozenset()
    """Users by which controllers make the pods of workloads: where a queue is a workload's, its pods are believed
    if one of these made them."""
    prices: Mapping[str, str] = field(default_factory=dict)
    """Cloud -> where and when its MachineType.usd_per_hour hold: ``AWS us-east-1, on demand, 2026-07-20``."""
    other_platforms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels of platforms without machines in the catalog: platform -> label key -> its meaning."""
    _seen: dict[str, Resource | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The bounded cache of ``resource``."""
    _signed: dict[Signature, tuple[Workload, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The bounded cache of ``workloads_signed``."""
    signatures: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)
    """The keys of the labels that identify a workload."""
    held_owners: frozenset[tuple[str, str]] = field(default=frozenset(), init=False, repr=False, compare=False)
    """(API group, kind) of the owners of pods that are not made until Kueue admits their workload."""
    codes: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)
    """Words that distinguish one model or instance family from another: ``h100``, ``p5``.
    ``catalog.nearest`` never takes a name that has one for that of another."""
    slice_shares: Mapping[str, tuple[Fraction, Fraction]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """MIG profile as in a resource name -> (least, most) share of a GPU that it takes, by compute or
    memory, over the models that have it."""

    types: Mapping[str, MachineType] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Instance type, also with the prefix that a platform puts before it (``ml.p5.48xlarge``) -> its machine."""
    reserved_prefixes: tuple[str, ...] = field(default=(), init=False, repr=False, compare=False)
    right_keys: Mapping[Where, frozenset[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Of ``reserved_keys``, the whole keys of which nothing is to be said in labels, or in annotations."""

    def trusting(self, namespaces: Iterable[str]) -> Catalog:
        """Return the catalog without the makers of pods that are service accounts of other namespaces: whoever could make one of that
        name would be believed."""
        trusted = tuple(f"{_ACCOUNT}{namespace}:" for namespace in namespaces)
        makers = (user for user in self.pod_makers if not user.startswith(_ACCOUNT) or user.startswith(trusted))
        return replace(self, pod_makers=frozenset(makers))

    def __post_init__(self) -> None:
        keys = frozenset(label.partition("=")[0] for workload in self.workloads for label in workload.labels)
        object.__setattr__(self, "signatures", keys)
        object.__setattr__(self, "held_owners", frozenset(owner for w in self.workloads if w.kueue == "suspends" for owner in w.owners))
        types = [machine.type for machine in self.machines if machine.type]
        object.__setattr__(self, "codes", codes_of(self.model_names, self.machine_families(), types))
        object.__setattr__(self, "slice_shares", slice_shares(self.gpus))
        prefixes = {platform.cloud: platform.type_prefix for platform in self.platforms.values() if platform.type_prefix}
        typed = [(machine.type, machine) for machine in self.machines if machine.type]
        named = {**dict(typed), **{f"{prefixes[machine.cloud]}{name}": machine for name, machine in typed if machine.cloud in prefixes}}
        object.__setattr__(self, "types", named)
        object.__setattr__(self, "reserved_prefixes", tuple(one.prefix for one in self.reserved_keys))
        right = {where: frozenset[str]().union(*(one.right(where) for one in self.reserved_keys)) for where in PLACES}
        object.__setattr__(self, "right_keys", right)

    def workloads_signed(self, owner: tuple[str, str], labels: tuple[tuple[str, str | None], ...]) -> tuple[Workload, ...]:
        """Return the workloads whose pods have this controlling owner (API group, kind), or one of these
        labels (key, value)."""
        key = owner, labels
        workloads = self._signed.get(key)
        if workloads is None:
            carried = {*(name for name, _ in labels), *(f"{name}={value}" for name, value in labels if value is not None)}
            workloads = tuple(w for w in self.workloads if owner in w.owners or not carried.isdisjoint(w.labels))
            if sum(map(len, owner)) + sum(len(name) + len(value or "") for name, value in labels) <= _LONGEST_SIGNATURE:
                if len(self._signed) >= _MOST_SIGNATURES:
                    self._signed.clear()
                self._signed[key] = workloads
        return workloads

    def resource(self, name: str) -> Resource | None:
        """Return what the catalog knows of a resource name, or None if it is no accelerator.

        A literal name beats a pattern; otherwise the catalog's order decides.
        """
        if len(name) > LONGEST_NAME:
            return self._read(name)
        if name not in self._seen:
            if len(self._seen) >= _MOST_NAMES:
                self._seen.clear()
            self._seen[name] = self._read(name)
        return self._seen[name]

    def _read(self, name: str) -> Resource | None:
        literal = [resource for resource in self.resources if resource.name == name]
        for known in literal or [resource for resource in self.resources if resource.name is None]:
            if found := known.pattern.fullmatch(name):
                groups = found.groupdict()
                profile, parts = known.profile or groups.get("profile"), known.parts.get(groups.get("mode") or "")
                return Resource(name=name, vendor=known.vendor, kind=known.kind, profile=profile, parts=parts)
        return None

    def name_devices(self, vendors: Collection[str], count: str = "") -> str:
        """Return the noun for devices of these vendors, ``devices`` if it differs or is not known. ``count``: their number, if known."""
        nouns = {self.nouns.get(vendor, "devices") for vendor in vendors}
        noun = nouns.pop() if len(nouns) == 1 else "devices"
        return noun.removesuffix("s") if count == "1" else noun

    def measure(self, name: str) -> Measure | None:
        """Return the measure that a resource of this name is, or None if it is a device or no accelerator."""
        return next((one for one in self.measures if fnmatchcase(name, one.name)), None)

    def ignored_by(self, name: str) -> str:
        """Return whose extender counts a resource that nodes need not list; "" for a resource that kube-scheduler counts."""
        return next((maker for glob, maker in self.ignored_resources.items() if fnmatchcase(name, glob)), "")

    def driver(self, name: str) -> str:
        """Return the DRA driver of the class of this name that a driver's chart brings; else the name itself, which may be a driver's."""
        return next((driver for driver, devices in self.published.items() if name in devices.classes), name)

    def is_accelerator_driver(self, driver: str) -> bool:
        """Return whether the devices of this DRA driver count as accelerators: those of an unlisted driver
        may be, so they do."""
        return driver not in self.other_drivers

    @property
    def renamed(self) -> Mapping[str, str]:
        """MIG profile, as nvidia-smi writes it -> the resource name that this cluster uses instead of the
        usual one."""
        names = {_spoken(known.profile): known.name for known in self.resources if known.kind == "mig" and known.profile}
        return {profile: name for profile, name in names.items() if name is not None}

    def models(self, name: str) -> tuple[Gpu, ...]:
        """Return the GPUs of a model name or a group name; empty if it is unknown."""
        return tuple(gpu for gpu in self.gpus if name == gpu.model or name in gpu.groups)

    @property
    def model_names(self) -> tuple[str, ...]:
        """Every name that ``models`` takes: models, then groups, in the catalog's order."""
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
        """Return every instance family of every cloud, also with the prefix that a platform puts before it
        (``ml.p5``)."""
        found = {(machine.cloud, machine.family) for machine in self.machines if machine.family is not None}
        prefixed = {f"{p.type_prefix}{family}" for p in self.platforms.values() for cloud, family in found if cloud == p.cloud}
        return frozenset((*(family for _, family in found), *prefixed))


def _spoken(profile: str) -> str:
    """Return a profile of a resource name, ``1g.10gb.me``, as nvidia-smi writes it: ``1g.10gb+me``."""
    return re.sub(r"gb\.(?=[a-z])", "gb+", profile)


_WORD = re.compile(r"[a-z0-9]+")
_SIZE = re.compile(r"\d+gb")
"""The memory in a name: it distinguishes A100-40GB from A100-80GB, but a name with a slip in it is still
that of an A100."""
_STEM = re.compile(r"([a-z]+\d+)[a-z]")
_BRAND = frozenset({"rtx"})
"""Words in the names of many models."""


def codes_of(models: Iterable[str], families: Iterable[str], types: Iterable[str] = ()) -> frozenset[str]:
    """Return the distinguishing words of all names.

    Of models these are all words but sizes (``rtx-pro-6000``: pro, 6000), also without a letter at the end (AMD's boards report
    ``MI325`` for ``MI325X``); of instance families the words with a digit (``p6-b200``: p6, b200); of an instance type with
    none of all these its own words with a digit (``Standard_ND12s``: nd12s).
    """
    of_models = {word for name in models for word in _WORD.findall(name.lower()) if not _SIZE.fullmatch(word)}
    stems = {stem[1] for word in of_models if (stem := _STEM.fullmatch(word))}
    of_families = {word for name in families for word in _WORD.findall(name.lower()) if not word.isalpha()}
    codes = (of_models | stems | of_families) - _BRAND
    of_types = (words for name in types if codes.isdisjoint(words := _WORD.findall(name.lower())))
    return frozenset(codes.union(word for words in of_types for word in words if not word.isalpha()))


def slice_shares(gpus: Iterable[Gpu]) -> dict[str, tuple[Fraction, Fraction]]:
    """Return MIG profile as in a resource name -> (least, most) share of a GPU, by compute or memory, over
    the models that have it."""
    shares: dict[str, list[Fraction]] = {}
    for gpu in gpus:
        for profile in gpu.mig:
            shares.setdefault(profile.spelling, []).append(gpu.share(profile))
    return {name: (min(parts), max(parts)) for name, parts in shares.items()}
