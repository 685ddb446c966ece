"""What Karpenter makes of a requirement on one label (sigs.k8s.io/karpenter pkg/scheduling/requirement.go): the values that the label
may have, or those that it may not, within bounds; and of the size of a machine of EC2 (github.com/aws/karpenter-provider-aws v1.15
pkg/providers/instancetype/types.go)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple, TypeGuard

from kube.labels import integer
from kube.requests import PODS, amounts, to_units
from kube.tree import map_at, maps_in, text_of

SUCCESSORS: Mapping[str, str] = {
    "Provisioner.karpenter.sh": "NodePool",
    "AWSNodeTemplate.karpenter.k8s.aws": "EC2NodeClass",
    "Machine.karpenter.sh": "NodeClaim",
}
"""Kinds that no Karpenter since 0.33 reads -> the kind that took the place of each (Karpenter's migration guide to v1beta1, 0.32)."""


def describe_removed(kinds: Iterable[str]) -> list[str]:
    """Return a sentence about each of these kinds that no Karpenter reads any more."""
    removed = sorted(SUCCESSORS.keys() & {*kinds})
    return [f"Karpenter since 0.33 does not read {kind}: replace it with {SUCCESSORS[kind]}" for kind in removed]


@dataclass(frozen=True, slots=True)
class Requirement:
    """The values of one label."""

    values: frozenset[str] = frozenset()
    complement: bool = False
    """True if the label may have any value but these."""
    least: int | None = None
    most: int | None = None

    def __and__(self, other: Requirement) -> Requirement:
        """Return what both admit (``Requirement.Intersection``)."""
        least = max((n for n in (self.least, other.least) if n is not None), default=None)
        most = min((n for n in (self.most, other.most) if n is not None), default=None)
        if least is not None and most is not None and least > most:
            return Requirement()
        complement = self.complement and other.complement
        if complement:
            values = self.values | other.values
        elif self.complement:
            values = other.values - self.values
        elif other.complement:
            values = self.values - other.values
        else:
            values = self.values & other.values
        values = frozenset(value for value in values if _within(value, least, most))
        return Requirement(values, complement=True, least=least, most=most) if complement else Requirement(values)

    @property
    def denies(self) -> bool:
        """True for NotIn and DoesNotExist, which a node without the label satisfies (``Requirement.Operator``)."""
        return (self.complement and bool(self.values)) or self.none

    @property
    def none(self) -> bool:
        """True if no value is left: the label is absent."""
        return not self.complement and not self.values

    def meets(self, wanted: Requirement) -> bool:
        """Return whether a pod that asks for ``wanted`` agrees (``Requirements.Intersects``)."""
        return not (self & wanted).none or (wanted.denies and self.denies)


def requirement(operator: str, values: Sequence[str]) -> Requirement | None:
    """Return a requirement as Karpenter reads it; None for an operator that it does not know, or a bound that is no
    number."""
    match operator:
        case "In":
            return Requirement(frozenset(values))
        case "NotIn":
            return Requirement(frozenset(values), complement=True)
        case "Exists":
            return Requirement(complement=True)
        case "DoesNotExist":
            return Requirement()
        case "Gt" | "Lt" | "Gte" | "Lte":
            bound = integer(values[0]) if len(values) == 1 else None
            if bound is None:
                return None
            if operator.startswith("L"):
                return Requirement(complement=True, most=bound - (operator == "Lt"))
            least = bound + (operator == "Gt")
            return Requirement(complement=True, least=least) if least < 2**63 else Requirement()
    return None


def _within(value: str, least: int | None, most: int | None) -> bool:
    if least is None and most is None:
        return True
    number = integer(value)
    return number is not None and (least is None or number >= least) and (most is None or number <= most)


EC2 = "karpenter.k8s.aws"
"""API group of the node classes of Karpenter on EC2."""
KWOK = "karpenter.kwok.sh"
"""That of the cloud that Karpenter simulates, whose machines are those of a file: the catalog has none of its own."""
Range = tuple[int, int]
"""(at least, at most), in kube-scheduler's units."""
Ranges = Mapping[str, Range]
"""Resource -> what a machine has of it. Of a resource that is absent nothing is known."""
MIB = 2**20
_MEMORY_OVERHEAD = 0.075
"""``--vm-memory-overhead-percent`` of Karpenter's AWS provider, by default; of a type that it has started before it uses the memory
that a node had, which is more than the estimate and less than the machine's."""
_EVICTION = 100 * MIB
_CPU_RESERVED = ((0, 1000, 0.06), (1000, 2000, 0.01), (2000, 4000, 0.005), (4000, 2**31, 0.0025))
"""(from, to, part that the kubelet keeps), in thousandths of a CPU."""
_VOLUMES = {"al2": "/dev/xvda", "al2023": "/dev/xvda", "bottlerocket": "/dev/xvdb"}
"""AMI family -> the device on which pods keep their files."""
_WINDOWS = "windows"
_UNLIMITED_PODS = 110
_VOLUME, _VOLUME_OF_WINDOWS = 20 * 2**30, 50 * 2**30
_STORAGE_RESERVED = 2**30


class MachineSize(NamedTuple):
    """An instance type of EC2."""

    vcpus: int
    memory_mib: int
    pods: int | None
    """Those for which its network interfaces have addresses; None if that is not known."""
    arm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass:
    """What an EC2NodeClass says of the amounts on its nodes (karpenter-provider-aws pkg/apis/v1/ec2nodeclass.go)."""

    family: str = ""
    """The AMI family, in lower case."""
    max_pods: int | None = None
    pods_per_core: int = 0
    kube_reserved: Mapping[str, int] = field(default_factory=dict)
    system_reserved: Mapping[str, int] = field(default_factory=dict)
    eviction: Mapping[str, Fraction | int] = field(default_factory=dict)
    """Signal of ``evictionHard`` -> an amount in bytes, or a Fraction of the whole."""
    volume: int | None = _VOLUME
    """Bytes of the volume on which pods keep their files; None if they are on the machine's own disks."""
    readable: bool = True
    """False if some amount is an expression, or no amount."""


def read_node_class(value: Mapping[str, Any]) -> NodeClass:
    """Return what an EC2NodeClass says of amounts. No content makes it raise."""
    spec = map_at(value, "spec")
    kubelet = map_at(spec, "kubelet")
    alias = next((text_of(term["alias"]) for term in maps_in(spec.get("amiSelectorTerms")) if term.get("alias")), "")
    family = (text_of(spec.get("amiFamily")) or alias.partition("@")[0]).lower()
    pods, per_core = kubelet.get("maxPods"), kubelet.get("podsPerCore")
    reserved = [amounts(map_at(kubelet, name)) for name in ("kubeReserved", "systemReserved")]
    signals = {text_of(name): _signal(amount) for name, amount in map_at(kubelet, "evictionHard").items()}
    unread = [len(map_at(kubelet, name)) > len(read) for name, read in zip(("kubeReserved", "systemReserved"), reserved, strict=True)]
    return NodeClass(
        family=family,
        max_pods=pods if _is_count(pods) else None,
        pods_per_core=per_core if _is_count(per_core) else 0,
        kube_reserved=reserved[0],
        system_reserved=reserved[1],
        eviction={name: amount for name, amount in signals.items() if amount is not None},
        volume=None if text_of(spec.get("instanceStorePolicy")) == "RAID0" else _volume(spec, family),
        readable=not (any(unread) or None in signals.values() or (pods is not None and not _is_count(pods))),
    )


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _signal(value: object) -> Fraction | int | None:
    """Return a threshold: a part of the whole, or an amount; None if it is neither. 100% switches it off."""
    text = text_of(value)
    if text.endswith("%"):
        try:
            part = Fraction(text.removesuffix("%")) / 100
        except (ValueError, ZeroDivisionError):
            return None
        return Fraction(0) if part == 1 else part
    return to_units("memory", text)


def _volume(spec: Mapping[Any, Any], family: str) -> int:
    """Return the bytes of the volume for pods (pkg/providers/instancetype/types.go ``ephemeralStorage``)."""
    mappings = list(maps_in(spec.get("blockDeviceMappings")))
    root = [mapping for mapping in mappings if mapping.get("rootVolume") is True]
    named = [mapping for mapping in mappings if mapping.get("deviceName") == _VOLUMES.get(family, "/dev/sda1")]
    for mapping in (*root[:1], *(mappings[-1:] if family == "custom" else named[:1])):
        size = to_units("ephemeral-storage", map_at(mapping, "ebs").get("volumeSize"))
        if size is not None:
            return size
    return _VOLUME_OF_WINDOWS if family.startswith(_WINDOWS) else _VOLUME


def capacity(size: MachineSize, node_class: NodeClass) -> Ranges:
    """Return what Karpenter's AWS provider counts of a machine against limits (types.go ``computeCapacity``)."""
    memory = size.memory_mib - (64 if size.arm else 0)
    estimate = memory - ceil(memory * MIB * _MEMORY_OVERHEAD / MIB)
    ranges: dict[str, Range] = {"cpu": (size.vcpus * 1000,) * 2, "memory": (estimate * MIB, size.memory_mib * MIB)}
    if (pods := _pods(size, node_class)) is not None:
        ranges[PODS] = pods, pods
    if node_class.volume is not None:
        ranges["ephemeral-storage"] = node_class.volume, node_class.volume
    return ranges


def _pods(size: MachineSize, node_class: NodeClass) -> int | None:
    """Return how many pods a node may have (types.go ``pods``)."""
    windows = node_class.family.startswith(_WINDOWS)
    count = node_class.max_pods if node_class.max_pods is not None else _UNLIMITED_PODS if windows else size.pods
    if count is None or not node_class.pods_per_core or node_class.family == "bottlerocket":
        return count
    return min(count, node_class.pods_per_core * size.vcpus)


def allocatable(size: MachineSize, node_class: NodeClass) -> Ranges:
    """Return what a machine has for pods, DaemonSets included (types.go ``NewInstanceType``): its capacity without what the kubelet and
    the system keep, and at which pods are evicted."""
    whole = capacity(size, node_class)
    counts_interfaces = node_class.family != "bottlerocket" and not node_class.family.startswith(_WINDOWS)
    pods = size.pods if counts_interfaces else whole.get(PODS, (size.pods,))[0]
    kept: dict[str, int] = {"cpu": _cpu_reserved(size.vcpus * 1000), "ephemeral-storage": _STORAGE_RESERVED}
    if pods is not None:
        kept["memory"] = (11 * pods + 255) * MIB
    kept |= node_class.kube_reserved
    ranges: dict[str, Range] = {}
    for name, (least, most) in whole.items():
        if name == "memory" and name not in kept:
            continue
        reserved = kept.get(name, 0) + node_class.system_reserved.get(name, 0)
        ranges[name] = least - reserved - _evicted(name, least, node_class), most - reserved - _evicted(name, most, node_class)
    return ranges


def _cpu_reserved(thousandths: int) -> int:
    """Return what the kubelet keeps of the CPU (types.go ``kubeReservedResources``)."""
    return sum(int((min(thousandths, end) - start) * part) for start, end, part in _CPU_RESERVED if thousandths >= start)


def _evicted(name: str, whole: int, node_class: NodeClass) -> int:
    """Return the amount at which pods are evicted (types.go ``evictionThreshold``)."""
    signal = {"memory": "memory.available", "ephemeral-storage": "nodefs.available"}.get(name)
    if signal is None:
        return 0
    threshold = node_class.eviction.get(signal, _EVICTION if name == "memory" else Fraction(1, 10))
    return ceil(threshold * whole) if isinstance(threshold, Fraction) else threshold


def simulated(size: MachineSize) -> tuple[Ranges, Ranges]:
    """Return what a machine of Karpenter's simulated cloud counts against limits, and what it has for pods (sigs.k8s.io/karpenter
    kwok/cloudprovider/helpers.go ``newInstanceType``)."""
    cpu, memory = size.vcpus * 1000, size.memory_mib * MIB
    return {"cpu": (cpu, cpu), "memory": (memory, memory)}, {"cpu": (cpu - 100,) * 2, "memory": (memory - 10 * MIB,) * 2}
