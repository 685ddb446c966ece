"""How the pods of a kind of workload are known, and where its manifest says what they are like: types.

Paths are names joined by dots; ``[*]`` is any item of a list, ``*`` any value of a map, as in ``spec.pytorchReplicaSpecs.*.template``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
"""of a pod's spec, as ``Place.fields`` may name them: all that rules read besides containers"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Amounts that a manifest has in fields of its own: ``gpu: {name: nvidia.com/gpu, quantity: 1}``."""

    container: str
    side: str = "limits"
    """or ``requests``"""
    amount: str = ""
    """path of the number"""
    name: str = ""
    """path of the resource's name"""
    default: str = ""
    """the resource's name where there is none at that path"""
    amounts: str = ""
    """path of a map of names and numbers, in place of the three above"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A strategic merge patch of the pod's spec: a map, or the text of one."""

    at: str = "."
    """path of what holds it, of several such things too"""
    path: str
    """of the patch in there"""
    of: str = ""
    """path of the names of whom it is for; where it names anybody, others don't get it"""
    only: str = ""
    """the name of these pods there"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Another object, whose pods these are, with what this place says laid over them: the runtime that a TrainJob names."""

    kinds: tuple[tuple[str, str], ...]
    """(API group, kind), of which it is one"""
    name: str
    """path of its name"""
    kind: str = ""
    """path of its kind, where the manifest says which"""
    place: int | None = None
    """which of its places is meant; all, where none is said"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a manifest that has no pod template says what pods are like.

    Paths start at ``at``, those with a leading ``/`` at ``root``. ``.`` is the place itself. Of several paths the first counts at
    which something is; of containers all do, labels and annotations are put together.
    """

    root: str = ""
    """path of what holds it all"""
    at: tuple[str, ...]
    """paths from ``root``, each to one kind of pod or to several of them"""
    spec: tuple[str, ...] = ()
    """a pod's whole spec"""
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    """``NAME=PATH`` of one container, which has that name where the manifest gives none; ``PATH[*]`` of a list of them"""
    init_containers: tuple[str, ...] = ()
    resources_as: str = "resources"
    """the field of those containers that others call ``resources``"""
    resources: tuple[str, ...] = ()
    """``NAME=PATH`` of the resources of a container, of which the manifest says no more"""
    devices: tuple[Devices, ...] = ()
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """of ``FIELDS``, by name"""
    patches: tuple[Patch, ...] = ()
    base: Base | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """How the pods of a kind of workload are known."""

    name: str
    """as in match.workloads: ``Job``, ``PyTorchJob``, ``Notebook``"""
    kind: str
    """of its manifest: Volcano's and Knative's are called as others are"""
    owners: tuple[tuple[str, str], ...] = ()
    """(API group, kind) of a controlling owner reference, e.g. ("batch", "Job")"""
    labels: tuple[str, ...] = ()
    """a pod label key, or key=value, that alone tells"""
    service: bool = False
    """long-lived: grace and disruption only if the policy names the workload"""
    api_version: tuple[str, ...] = ()
    """apiVersions of the workload's own manifest"""
    resource: str = ""
    """the kind in the API's paths, plural: ``deployments``; needed where there are templates or places"""
    cluster: bool = False
    """its objects are in no namespace, so nobody can say in which one its pods will be"""
    through: tuple[str, str] | None = None
    """(API group, kind) of what stands between it and its pods, where that owns them: a CronJob's Job"""
    scheduler: str = ""
    """schedulerName that its operator writes where the template has none"""
    templates: tuple[str, ...] = ()
    """paths to its pod templates"""
    places: tuple[Place, ...] = ()
    """where it says what its pods are like, in other forms than a template's"""
    refers: tuple[Base, ...] = ()
    """other objects that have the templates of its pods, and are judged by themselves"""

    @property
    def describes_pods(self) -> bool:
        """Whether pods can be made from its manifest."""
        return bool(self.templates or self.places)


def joined(start: str, path: str) -> str:
    """``path`` after ``start``; ``.`` and nothing at all add nothing."""
    return ".".join(part for part in (start, path) if part not in ("", "."))
