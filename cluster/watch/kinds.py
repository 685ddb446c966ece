"""The table of the kinds that Berth reads of a cluster: their API versions, whether decisions rest on them, what Berth does
without them, and what is kept of each object. ``workload_kinds`` adds the kinds that the catalog describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import quote

from analysis.audit.workload_report import KIND, OPEN_REPORTS, PLAIN_KIND, POLICY_REPORTS, SOURCE
from analysis.world.happenings import NOT_CREATED
from cluster.watch.trims import (
    amounts_alone,
    daemon_alone,
    discovery_alone,
    event_alone,
    labels_alone,
    node,
    owner_alone,
    quotas_alone,
    quotas_and_usage,
    requests_alone,
    rolling_alone,
    slice_alone,
    spec_alone,
    untrimmed,
    whole,
    whole_node,
    with_status,
)
from kube.tree import Raw
from policies.facts import admission_queues
from policies.facts.offered_devices import OPERATOR
from policies.policy import API_VERSION, CONTROLLER, GROUP
from policies.state.objects import Key

Need = Literal["required", "decisive", "advice"]
"""What rests on a kind. ``required``: nothing is decided before its objects are known. ``decisive``: decisions rest on it,
but it may be absent, forbidden or broken: then its objects are unknown. ``advice``: only warnings, metrics and reports do."""
DRA = "resource.k8s.io"
"""The one API group with a dot in its name of which Berth watches kinds and that the API server itself serves."""
PARTIAL = "PartialObjectMetadata"
PARTIAL_ACCEPT = "application/json;as={};g=meta.k8s.io;v=v1"
"""Accept header with which the API server sends metadata only (k8s.io/apimachinery, meta/v1
PartialObjectMetadata)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One kind, followed or listed once."""

    kind: str
    plural: str
    group: str
    """The API group; "" is the core group."""
    versions: tuple[str, ...]
    """API versions, tried in this order."""
    namespaced: bool = False
    ours: bool = False
    """True for a kind that one of Berth's CustomResourceDefinitions defines."""
    need: Need = "decisive"
    without: str = ""
    """What Berth does while the kind can't be read, as a clause for the log and ``/readyz``; "" for a required kind."""
    custom: bool = False
    """True for a workload of somebody's CustomResourceDefinition."""
    metadata_only: bool = False
    selectors: tuple[tuple[str, str], ...] = ()
    """(``fieldSelector`` or ``labelSelector``, its text): which objects of the kind are listed and watched."""
    most: int = 0
    """Bytes of a trimmed object that are kept at most: of a larger one only the name is known. 0: any number."""
    share: str = ""
    """The share of its namespace, of ``bounds.SHARE`` bytes, that its objects count towards; "" where no tenant writes the
    kind."""
    marked: bool = False
    """True if decisions need to know of an object that is not kept; False: there is none, and the kind is not wholly known."""
    most_objects: int = 0
    """Objects that are listed, in pages: further ones are left out. 0: any number."""
    page: int = 500
    """Objects per page of a list: the default of client-go's pager, fewer where objects are large."""
    trim: Callable[[Raw, str, str], Raw]
    """Maps (object, apiVersion, kind) to what is cached of it; objects of built-in kinds have neither of the
    two in lists."""

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    @property
    def required(self) -> bool:
        """True if nothing can be decided without the kind."""
        return self.need == "required"

    @property
    def converted(self) -> bool:
        """True if somebody's CustomResourceDefinition defines the kind: its conversion webhook may fail, or hang for 30 s."""
        return "." in self.group and self.group != DRA

    @property
    def title(self) -> str:
        """The name by which it is followed, logged and measured: that of a custom workload has its group, for Volcano's
        Job is not Kubernetes'."""
        return f"{self.kind}.{self.group}" if self.custom else self.kind

    def path(self, version: str, namespace: str = "", name: str = "") -> str:
        """Return the URL path of the objects in all namespaces or in one, or of a single object."""
        return path_of(self.api_version(version), self.plural, namespace, name)

    def accept(self, list_or_watch: str) -> str:
        """Return the Accept header for "list" or "watch"."""
        if not self.metadata_only:
            return "application/json"
        return PARTIAL_ACCEPT.format(PARTIAL + ("List" if list_or_watch == "list" else ""))

    @property
    def resource(self) -> str:
        """The name that RBAC and kubectl use, such as nodepools.karpenter.sh."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def definition(self) -> str | None:
        """The URL path of Berth's CustomResourceDefinition; None for all other kinds."""
        return f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.resource}" if self.ours else None


def path_of(api_version: str, plural: str, namespace: str = "", name: str = "") -> str:
    """Return the URL path of objects of a kind, or of one object.

    All is quoted: an object written past the API server can have any name, and an owner reference has what the author of a pod wrote.
    """
    where = f"namespaces/{quote(namespace, safe='')}/" if namespace else ""
    which = f"/{quote(name, safe='')}" if name else ""
    return f"/{'apis' if '/' in api_version else 'api'}/{quote(api_version)}/{where}{plural}{which}"


def key_of(kind: str, value: Raw) -> Key:
    """Return the key of a trimmed object."""
    metadata = value["metadata"]
    return kind, metadata.get("namespace") or "", metadata["name"]


_VERSION = API_VERSION.removeprefix(f"{GROUP}/")
_DRA = ("v1", "v1beta2", "v1beta1")
"""resource.k8s.io: v1 since Kubernetes 1.34, v1beta2 since 1.33, v1beta1 since 1.32"""


_UNKNOWN_CLAIMS = "claims are unknown, so policies with device requirements deny pods with claims"
_NO_PLACES = "platforms that only these objects show are unknown, so no affinity is written for them"
_NO_QUEUES = "no warning about queues that can never admit a workload"
_NO_MODES = "labels of GPU Feature Discovery are assumed to be maintained"


def _ours(kind: str, plural: str, *, namespaced: bool = False) -> Watched:
    return Watched(
        kind=kind,
        plural=plural,
        group=GROUP,
        versions=(_VERSION,),
        namespaced=namespaced,
        ours=True,
        need="required",
        most=256 * 2**10,
        share="policies" if namespaced else "",
        marked=True,
        trim=whole,
    )


def _claim(kind: str, plural: str) -> Watched:
    return Watched(
        kind=kind,
        plural=plural,
        group=DRA,
        versions=_DRA,
        namespaced=True,
        without=_UNKNOWN_CLAIMS,
        share="claims",
        marked=True,
        trim=requests_alone,
    )


def _operator(kind: str, plural: str, version: str) -> Watched:
    return Watched(kind=kind, plural=plural, group=OPERATOR, versions=(version,), without=_NO_MODES, trim=discovery_alone)


def _kueue(kind: str, plural: str, trim: Callable[[Raw, str, str], Raw] = spec_alone, *, namespaced: bool = False) -> Watched:
    return Watched(
        kind=kind,
        plural=plural,
        group=admission_queues.GROUP,
        versions=("v1beta2", "v1beta1"),  # Kueue 0.19 serves both, older ones the second
        namespaced=namespaced,
        need="advice",
        without=_NO_QUEUES,
        share="queues" if namespaced else "",
        trim=trim,
    )


_FOLLOWED = (
    _ours("ClusterGPUPolicy", "clustergpupolicies"),
    _ours("GPUPolicy", "gpupolicies", namespaced=True),
    _ours("GPUNodeTemplate", "gpunodetemplates"),
    Watched(kind="Namespace", plural="namespaces", group="", versions=("v1",), need="required", metadata_only=True, trim=labels_alone),
    Watched(kind="Node", plural="nodes", group="", versions=("v1",), page=100, without=_NO_PLACES, trim=node),
    Watched(
        kind="NodePool",
        plural="nodepools",
        group="karpenter.sh",
        versions=("v1", "v1beta1"),
        without=f"{_NO_PLACES}; grace periods may exceed a NodePool's",
        trim=spec_alone,
    ),
    Watched(kind="DeviceClass", plural="deviceclasses", group=DRA, versions=_DRA, without=_UNKNOWN_CLAIMS, trim=spec_alone),
    _claim("ResourceClaim", "resourceclaims"),
    _claim("ResourceClaimTemplate", "resourceclaimtemplates"),
    Watched(
        kind="ResourceSlice",
        plural="resourceslices",
        group=DRA,
        versions=_DRA,
        page=100,
        need="advice",
        without="no warning about GPUs that are offered twice",
        trim=slice_alone,
    ),
    _operator("ClusterPolicy", "clusterpolicies", "v1"),
    _operator("GPUCluster", "gpuclusters", "v1alpha1"),
    _kueue("LocalQueue", "localqueues", namespaced=True),
    _kueue("ClusterQueue", "clusterqueues", quotas_alone),
    _kueue("ResourceFlavor", "resourceflavors"),
)
KINDS = tuple(replace(kind, most=kind.most or (0 if kind.required else 64 * 2**10)) for kind in _FOLLOWED)
"""The kinds that the server follows."""
DECISIVE = tuple(kind for kind in KINDS if kind.need != "advice")
"""The kinds on which decisions rest."""
QUEUES = tuple(kind for kind in KINDS if kind.group == admission_queues.GROUP)
NODE_CLASSES = Watched(
    kind="EC2NodeClass", plural="ec2nodeclasses", group="karpenter.k8s.aws", versions=("v1", "v1beta1"), need="advice", trim=spec_alone
)
NOT_FINISHED = ("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed")
"""Finished pods hold nothing: to the watch, a pod that finishes is deleted (k8s.io/kubernetes pkg/registry/core/pod
strategy.go, ToSelectableFields)."""
PODS = Watched(
    kind="Pod", plural="pods", group="", versions=("v1",), namespaced=True, need="required", selectors=(NOT_FINISHED,), trim=untrimmed
)
"""Readers set a ``trims.PodTrim``, which needs the catalog."""


def _workload(kind: str, plural: str, group: str) -> Watched:
    return Watched(kind=kind, plural=plural, group=group, versions=("v1",), namespaced=True, trim=owner_alone)


def owners_alone(kind: Watched) -> Watched:
    """Return the kind, read without the specs of its objects: for their owners."""
    return replace(kind, metadata_only=True, page=2000)


REPLICA_SETS = owners_alone(_workload("ReplicaSet", "replicasets", "apps"))
_JOBS = _workload("Job", "jobs", "batch")
OWNERS = (REPLICA_SETS, owners_alone(_JOBS))
"""The owners of pods that are owned themselves: a ReplicaSet by its Deployment, a Job by its CronJob."""
WORKLOADS = (
    _workload("Deployment", "deployments", "apps"),
    _workload("StatefulSet", "statefulsets", "apps"),
    _workload("DaemonSet", "daemonsets", "apps"),
    _JOBS,
    _workload("CronJob", "cronjobs", "batch"),
)
"""Kubernetes' own workloads; ``workload_kinds`` sets the trim that reads their templates."""
KUEUE_WORKLOADS = replace(
    _workload("Workload", "workloads", admission_queues.GROUP), versions=QUEUES[0].versions, need="advice", trim=untrimmed
)
RESOURCE_QUOTAS = Watched(
    kind="ResourceQuota",
    plural="resourcequotas",
    group="",
    versions=("v1",),
    namespaced=True,
    need="advice",
    most=64 * 2**10,
    share="quotas",
    most_objects=100_000,
    trim=amounts_alone,
)
LIMIT_RANGES = replace(RESOURCE_QUOTAS, kind="LimitRange", plural="limitranges", trim=untrimmed)
QUOTAS = replace(RESOURCE_QUOTAS, trim=untrimmed)
"""ResourceQuotas with what is used of them."""
NAMESPACE_LIMITS = (QUOTAS, LIMIT_RANGES)
"""What a namespace lets its pods request, with what is used of it: for answers about one pod."""
ENDPOINT_SLICES = Watched(
    kind="EndpointSlice", plural="endpointslices", group="discovery.k8s.io", versions=("v1",), namespaced=True, trim=untrimmed
)
DAEMONS = replace(_workload("DaemonSet", "daemonsets", "apps"), namespaced=False, need="advice", trim=daemon_alone)
"""DaemonSets of all namespaces: what their pods take of new nodes, and whether device plugins run on nodes."""
ROLLING = replace(_workload("Deployment", "deployments", "apps"), need="advice", trim=rolling_alone)
"""Deployments, for how they replace their pods."""
_OTHERS = (KUEUE_WORKLOADS, RESOURCE_QUOTAS, LIMIT_RANGES, ENDPOINT_SLICES)
EVENTS = Watched(kind="Event", plural="events", group="", versions=("v1",), namespaced=True, need="advice", trim=event_alone)
BERTH_EVENTS = replace(EVENTS, selectors=(("fieldSelector", f"reportingComponent={CONTROLLER}"),))
POD_EVENTS = replace(EVENTS, selectors=(("fieldSelector", f"reason={NOT_CREATED}"),))
"""What is read of Events: the API server chooses by these fields, one at a time (pkg/registry/core/event/strategy.go)."""
MANAGED_BY = ("app.kubernetes.io/managed-by", SOURCE)


def _reports(kind: str, plural: str, api_version: str) -> Watched:
    group, _, version = api_version.partition("/")
    ours = (("labelSelector", "=".join(MANAGED_BY)),)
    return Watched(kind=kind, plural=plural, group=group, versions=(version,), namespaced=True, selectors=ours, trim=untrimmed)


REPORTS = (_reports(KIND, "reports", OPEN_REPORTS), _reports(PLAIN_KIND, "policyreports", POLICY_REPORTS))
"""The kinds of report, the preferred one first: OpenReports, and what it replaces."""
ROWS = {row.kind: row for row in (*KINDS, NODE_CLASSES, PODS, REPLICA_SETS, *WORKLOADS, *_OTHERS, EVENTS, *REPORTS)}
"""Kind -> its row, of all kinds but those of the catalog (``workload_kinds``)."""
SLICES = ROWS["ResourceSlice"]


def status_path(key: Key) -> str:
    """Return the URL path of the status of one of Berth's objects."""
    kind, namespace, name = key
    return f"{ROWS[kind].path(ROWS[kind].versions[0], namespace, name)}/status"


def with_offers(kinds: Iterable[Watched]) -> Iterator[Watched]:
    """Yield the kinds, nodes and NodePools with what they offer, ClusterQueues with what is reserved of them."""
    trims = {"Node": whole_node, "NodePool": with_status, "ClusterQueue": quotas_and_usage}
    return (replace(kind, trim=trims.get(kind.kind, kind.trim)) for kind in kinds)
