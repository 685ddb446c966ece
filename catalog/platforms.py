"""Types for the makers of GPU nodes, the labels of such nodes, and what these need of a pod."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from kube.labels import Expression, Possible
from kube.taints import Taint

Capacity = Literal["spot", "on-demand", "reserved"]
Sharing = Literal["Exclusive", "MIG", "TimeSliced"]
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way in which a node shares its GPUs, and its labels in that case."""

    sharing: Sharing
    vendor: str
    resource: str | None = None
    """The extended resource, which may hold ``{profile}`` (with '+' as '.'). None: the machine's own
    (``nvidia.com/gpu``)."""
    strategy: Literal["mixed", "single"] | None = None
    """Of a variant per MIG profile: the --mig-strategy that the cluster must have. None with per_profile: any
    cluster (GKE)."""
    per_profile: bool = False
    suffix: str = ""
    """The suffix of the product label: ``-SHARED``, ``-MIG-{profile}``."""
    labels: Mapping[str, Possible] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingScheme:
    variants: tuple[Variant, ...] = ()
    exclude: Mapping[Sharing, tuple[Expression, ...]] = field(default_factory=dict)
    """The expressions that keep a pod off nodes of that sharing; those for all sharing that R leaves out
    are written together."""
    only: Mapping[Sharing, tuple[Expression, ...]] = field(default_factory=dict)
    """The expressions that select nodes of that sharing alone (written where the keys are known before
    boot, or on gfd)."""
    slice_key: str | None = None
    """The label whose value is the MIG profile (GKE partition size), where a slice is selected by label."""

    def of(self, vendors: Collection[str]) -> SharingScheme:
        """Return the scheme without expressions on labels that only nodes of other vendors have."""
        keys = {key for variant in self.variants if variant.vendor in vendors for key in variant.labels}
        exclude, only = (
            {sharing: tuple(e for e in expressions if e.key in keys) for sharing, expressions in sentences.items()}
            for sentences in (self.exclude, self.only)
        )
        return replace(self, exclude=exclude, only={sharing: expressions for sharing, expressions in only.items() if expressions})


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    name: str
    cloud: str | None = None
    """The cloud whose MachineTypes it has; None: machines are the product labels of every GPU (gfd)."""
    creates_nodes: bool = False
    makes_slices: bool = False
    """False for Karpenter and EKS Auto: no node is ever made for a slice or a ``.shared`` name."""
    slices: tuple[str, ...] = ()
    """Resource names for which such nodes exist although makes_slices is False (set by a --catalog
    overlay)."""
    partition_sizes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Model -> the only MIG profiles that its nodes may have; a model that is not listed may have all of its profiles."""
    anchor: str
    """A label that every node of this platform has and no node of another platform."""
    anchor_value: str = ""
    """Its value on such nodes, if other nodes have the label with another value; empty: any."""
    not_with: tuple[str, ...] = ()
    """Labels that show that a node with the anchor was made by somebody else."""
    type_prefix: str = ""
    """The prefix of the cloud's own names of instance types on its nodes: ``ml.``."""
    node_classes: tuple[str, ...] = ()
    """API groups of the node classes (a NodePool's spec.template.spec.nodeClassRef) that this platform's
    NodePools name."""
    gpu_pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Label key -> its values on machines with GPUs: a NodePool that requires other values makes none."""
    accelerator_pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Label key -> its values on machines with accelerators that are no GPUs: Inferentia, Trainium, Gaudi."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Label key -> attribute, known before the node exists (on gfd: all labels)."""
    size_labels: Mapping[str, Literal["cpu", "memory"]] = field(default_factory=dict)
    """Label key -> the size of the machine that it tells: its CPUs, or its memory in MiB."""
    after_boot: Mapping[str, str] = field(default_factory=dict)
    """Label key -> attribute, written only once the node runs (GFD on clouds)."""
    machine_keys: tuple[tuple[str, ...], ...] = ()
    """Lists of keys that may express the machine axis, best first."""
    capacity: Mapping[Capacity, Mapping[str, str]] = field(default_factory=dict)
    """The capacity types of this platform, with their labels."""
    further_capacity: Mapping[Capacity, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    """Other labels of nodes of a capacity type, for nodes that a pod gets only if its author selects them: never written."""
    capacity_keys: tuple[str, ...] = ()
    sharing: str
    """The name of a SharingScheme."""
    protect_durations: bool = False
    """True if karpenter.sh/do-not-disrupt takes a duration (provider 1.12 or later)."""

    def capacities(self) -> Iterator[tuple[Capacity, Mapping[str, str], bool]]:
        """Yield the capacity types with their labels, and whether these are ``further_capacity``."""
        for capacity, labels in self.capacity.items():
            yield capacity, labels, False
            yield from ((capacity, further, True) for further in self.further_capacity.get(capacity, ()))

    def is_spot(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels of a node show that the cloud may take it away."""
        spot_labels = (own for capacity, own, _ in self.capacities() if capacity == "spot")
        return any(labels.get(key) == value for own in spot_labels for key, value in own.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLabel:
    """A label by which a cloud or a discovery agent says that a node has accelerators."""

    key: str
    value: str = ""
    """Its value, or a glob, in lower case; empty: any value that does not mean none."""
    vendor: str = ""
    """Whose they are; empty: not told."""
    count: str = ""
    """The label with their number; empty: none."""
    resource: str = ""
    """The name of one whole device, if it is not in ``Catalog.whole`` or listed by its name alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlugin:
    """How the DaemonSet of a device plugin is known: its own name, or the image of one of its containers, has this text."""

    text: str
    vendor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorTaint:
    vendor: str
    taint: Taint
    """The taint to tolerate; with the value "" the toleration is written with Exists."""
    platforms: tuple[str, ...] = ()
    """The platforms that have it; empty: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """One way to mark a pod as not to be disrupted."""

    where: Literal["annotations", "labels"]
    key: str
    value: str
    durations: bool = False
    """True if the value may be a Go duration where Platform.protect_durations."""
    platforms: tuple[str, ...] = ()
    """The platforms that have it; empty: all."""
    any_value: bool = False
    """True if it is not known how the value is compared: any value that is not plainly false protects."""
    only_judged: bool = False
    """True if it is held to a maximum but never written: an older name, or a second place for the same
    word."""
    removed: bool = False
    """True if today's versions of its reader do not read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A label or an annotation of pods that its reader takes for one of a few words, and ignores where it is none."""

    where: Literal["annotations", "labels"]
    key: str
    values: tuple[str, ...] = ()
    several: bool = False
    """True if several may be joined by commas."""
    boolean: bool = False
    """True if it is read as Go's strconv.ParseBool does."""
    durations: bool = False
    """True if it may be a Go duration too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedContainer:
    """A container that an admission webhook adds to pods: its author sets its resources elsewhere than in the pod's spec."""

    name: str
    """The container's name; one that ends with ``*`` is a prefix."""
    injector: str
    """Who adds it, as messages name it."""
    setting: str = ""
    """Where its resources are set if no annotation of the pod does: ``spec.resources of the Instrumentation``."""
    requests: Mapping[str, str] = field(default_factory=dict)
    """cpu and memory -> the annotation of the pod that sets the request."""
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraceCap:
    """A limit on grace periods. ``capacity`` spot: the interruption notice; None: the autoscaler's own
    cap."""

    name: str
    """For example, ``EC2 spot interruption notice``."""
    seconds: int = 0
    capacity: Capacity | None = None
    platforms: tuple[str, ...] = ()
