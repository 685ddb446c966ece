"""Types for GPUs, their MIG profiles and the machines that carry them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

Network = tuple[int | None, tuple[tuple[str, int], ...]]
"""The number of a machine's GPUs, and all its network devices by extended resource."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfile:
    name: str
    """The name as nvidia-smi writes it: ``1g.10gb``, ``1g.10gb+me``, ``1g.24gb-me``."""
    count: int
    """The most instances of this profile alone on one GPU."""
    compute: int
    """Compute slices (the ``1`` of 1g)."""
    memory_gb: int
    """The nominal memory, the number in the name."""
    attribute: str | None = None
    """The suffix of the name: ``+me``, ``+me.all``, ``+gfx``, ``-me``."""
    usable_mib: int | None = None
    """Set only if the figure is verified."""

    @property
    def spelling(self) -> str:
        """The name in resource names and labels, where ``+`` becomes ``.`` ([device-plugin] internal/rm)."""
        return self.name.replace("+", ".")

    @property
    def resource(self) -> str:
        """The extended resource under the mixed strategy."""
        return f"nvidia.com/mig-{self.spelling}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    model: str
    """The catalog name that policies use: ``A100-40GB``, ``T4``."""
    groups: tuple[str, ...] = ()
    """Wider names that include it: ``A100``."""
    vendor: str
    """For example, nvidia, amd, intel or habana."""
    family: str
    """The architecture as in nvidia.com/gpu.family (``ada-lovelace``), or the vendor's (``cdna3``)."""
    memory_gb: int | None = None
    """The nominal memory of one GPU."""
    memory_mib: int | None = None
    products: tuple[str, ...] = ()
    """Values of the vendor's product label, newest driver first."""
    compute_capability: str | None = None
    withdrawn: bool = False
    """True if clouds sell it no longer, though some price lists have it: no message names it as an example."""
    mig: tuple[MigProfile, ...] = ()

    @property
    def generation(self) -> tuple[int, ...]:
        """The numbers in NVIDIA's compute capability, else in the name of the family: larger for newer models of one vendor."""
        return tuple(int(number) for number in re.findall(r"\d+", self.compute_capability or self.family))

    @property
    def slices(self) -> dict[str, MigProfile]:
        """The MIG profiles by their spelling in resource names."""
        return {profile.spelling: profile for profile in self.mig}

    def share(self, profile: MigProfile) -> Fraction:
        """Return the part of the GPU that a slice is: the larger of its parts of compute and of memory."""
        compute, memory = max(own.compute for own in self.mig), max(own.memory_gb for own in self.mig)
        return max(Fraction(profile.compute, compute), Fraction(profile.memory_gb, memory))


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """One instance type (on GKE N1: one accelerator; type None)."""

    cloud: str
    """One of aws, azure, gcp."""
    type: str | None = None
    types: tuple[str, ...] = ()
    """If ``type`` is None, the types that may carry it, as prefixes that end in ``*``; empty: any type."""
    family: str | None = None
    """The name that ``instanceFamilies`` uses: ``p4d``, ``a2``."""
    model: str
    """A ``Gpu.model``."""
    count: int | None = None
    """The number of devices; None: any."""
    vcpus: int | None = None
    """The CPUs of the whole machine, as the cloud counts them; None: unknown."""
    memory_mib: int | None = None
    """The memory of the whole machine in MiB, before kernel, kubelet and daemons take theirs; that of a GPU is among ``attributes``.
    None: unknown."""
    pods: int | None = None
    """The most pods that Karpenter places on it by its network interfaces, without prefix delegation and without ``maxPods``;
    None: unknown, or not a property of the machine."""
    arch: str | None = None
    """The value of ``kubernetes.io/arch``; None: unknown."""
    resource: str
    """The extended resource: ``nvidia.com/gpu``."""
    attributes: Mapping[str, str]
    """Further label values by attribute name: gpuName, memoryMiB, category, generation, size,
    manufacturer, accelerator."""
    optional: frozenset[str] = frozenset()
    """Attributes whose labels some versions of the platform leave out."""
    usd_per_hour: float | None = None
    """The indicative on-demand price of the whole machine; Catalog.prices has the place and date."""
    not_on: tuple[str, ...] = ()
    """Platforms of this cloud that never make it."""
    uncounted: tuple[str, ...] = ()
    """Platforms that label it and count none of its GPUs: without further settings they make none for a pod that requests one."""
    network: Mapping[str, int] = field(default_factory=dict)
    """The network devices that pods may ask for, by extended resource (vpc.amazonaws.com/efa), all of them; empty: none are known."""
