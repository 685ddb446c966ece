"""Types for how the pods of a kind of workload are recognized, and where its manifest describes them.

Paths are names joined by dots; ``[*]`` is any item of a list, ``*`` any value of a map, as in
``spec.pytorchReplicaSpecs.*.template``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

FIELDS = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "resourceClaims",
    "schedulerName",
    "nodeName",
    "terminationGracePeriodSeconds",
    "activeDeadlineSeconds",
)
"""The fields of a pod's spec that ``DescribedPods.fields`` may name: all that rules read besides containers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFields:
    """Amounts that a manifest has in fields of its own: ``gpu: {name: nvidia.com/gpu, quantity: 1}``."""

    container: str
    side: Literal["limits", "requests"] = "limits"
    amount: str = ""
    """The path of the number."""
    name: str = ""
    """The path of the resource's name."""
    default: str = ""
    """The resource's name if nothing is at that path."""
    amounts: str = ""
    """The path of a map of names and numbers, in place of the three above."""
    each: str = ""
    """The path of resource names, in their place: one device for each time that a name stands there."""
    claims: str = ""
    """The path of maps with the ``claimName`` and ``requestName`` of a resource claim of the pod, in their place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplatePatch:
    """A strategic merge patch of the pod's spec: a map, or the text of one."""

    at: str = "."
    """The path of what holds it; there may be several."""
    path: str
    """The path of the patch within that."""
    of: str = ""
    """The path of the names of the pods that it is for; if there are any, other pods don't get it."""
    only: str = ""
    """The name by which these pods are listed there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseObject:
    """Another object, whose pods these are, with what this place describes laid over them: the runtime
    that a TrainJob names."""

    kinds: tuple[tuple[str, str], ...] = ()
    """The kinds that it may be of: (API group, kind)."""
    name: str
    """The path of its name."""
    kind: str = ""
    """The path of its kind, if the manifest has it."""
    place: int | None = None
    """The index of the place in it that is meant; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedPods:
    """The place where a manifest that has no pod template describes its pods.

    Paths start at ``at``, those with a leading ``/`` at ``root``. ``.`` is the place itself. Of several paths
    the first at which there is a value counts; of containers all do, labels and annotations are put together.
    """

    root: str = ""
    """The path of what holds it all."""
    at: tuple[str, ...] = ()
    """Paths from ``root``, each to one kind of pod or to several of them."""
    spec: tuple[str, ...] = ()
    """Paths of a pod's whole spec."""
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    """``NAME=PATH`` of one container, which has that name if the manifest gives none; ``PATH[*]`` of a
    list of them."""
    init_containers: tuple[str, ...] = ()
    resources_as: str = "resources"
    """The name of the field of those containers that is ``resources`` in others."""
    resources: tuple[str, ...] = ()
    """``NAME=PATH`` of the resources of a container of which the manifest has nothing else."""
    devices: tuple[DeviceFields, ...] = ()
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Paths of ``FIELDS``, by name."""
    patches: tuple[TemplatePatch, ...] = ()
    base: BaseObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """How the pods of a kind of workload are recognized, and where they are described."""

    name: str
    """The name in match.workloads: ``Job``, ``PyTorchJob``, ``Notebook``."""
    kind: str = ""
    """The kind of its manifest: Volcano's and Knative's are the same as those of others."""
    owners: tuple[tuple[str, str], ...] = ()
    """(API group, kind) of a controlling owner reference, e.g. ("batch", "Job")."""
    labels: tuple[str, ...] = ()
    """A pod label key, or key=value, that alone identifies the workload."""
    service: bool = False
    """True if it is long-lived: grace and disruption apply only if the policy names the workload."""
    api_version: tuple[str, ...] = ()
    """The apiVersions of the workload's own manifest."""
    resource: str = ""
    """The plural of the kind in the API's paths: ``deployments``; needed if there are templates or places."""
    cluster: bool = False
    """True if its objects are in no namespace, so that the namespace of its pods cannot be known."""
    through: tuple[str, str] | None = None
    """(API group, kind) of the object between it and its pods, if that owns them: a CronJob's Job."""
    scheduler: str = ""
    """The schedulerName that its operator writes if the template has none."""
    templates: tuple[str, ...] = ()
    """Paths to its pod templates."""
    places: tuple[DescribedPods, ...] = ()
    """The places where it describes its pods in other forms than a template."""
    refers: tuple[BaseObject, ...] = ()
    """Other objects that have the templates of its pods, and are judged by themselves."""
    finished: tuple[str, ...] = ()
    """``PATH=TEXT``, or ``PATH`` alone for any value: it makes no pods any more, besides what conditions say of all
    kinds (``analysis.audit.templates``)."""
    kueue: Literal["suspends", "gates"] | None = None
    """How Kueue holds it back: its pods are not made before (``suspends``), or made with a gate; None: Kueue does not
    manage the kind."""

    slurm: Literal["workload", "controller"] | None = None
    """How Slurm bridge takes it: as a workload that it knows, whatever owns it (``workload``); as a controller that it may
    read, below those (``controller``); None: it cannot read the kind."""

    @property
    def describes_pods(self) -> bool:
        """True if pods can be made from its manifest."""
        return bool(self.templates or self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """A kind that stands between a workload and its pods, and has no entry of its own: Knative's Revision."""

    group: str
    kind: str
    resource: str
    """The plural of the kind in the API's paths."""


def join_path(start: str, path: str) -> str:
    """Return ``path`` after ``start``; ``.`` and an empty path add nothing."""
    return ".".join(part for part in (start, path) if part not in ("", "."))
