"""The watched kinds: their API versions, and the fields of each object that are cached."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from policies.facts import admission_queues
from policies.facts.offered_devices import OPERATOR, slimmed
from policies.policy import API_VERSION, GROUP
from policies.state.objects import Key

Raw = dict[str, Any]
METADATA = ("name", "namespace", "uid", "generation", "resourceVersion", "creationTimestamp", "deletionTimestamp")
"""The metadata fields that are cached; managedFields alone is often as large as the rest of an object."""
AMOUNTS = ("capacity", "allocatable")
"""The parts of a node's status that have amounts of resources."""
PARTIAL = "PartialObjectMetadata"
PARTIAL_ACCEPT = "application/json;as={};g=meta.k8s.io;v=v1"
"""Accept header with which the API server sends metadata only (k8s.io/apimachinery, meta/v1
PartialObjectMetadata)."""


def map_of(value: object) -> Raw:
    """Return the value if it is a map, else an empty one: objects come from outside."""
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One watched kind."""

    kind: str
    plural: str
    group: str
    """The API group; "" is the core group."""
    versions: tuple[str, ...]
    """API versions, tried in this order."""
    namespaced: bool = False
    ours: bool = False
    """True for a kind that one of Berth's CustomResourceDefinitions defines."""
    required: bool = False
    """True if nothing can be decided without it; the other kinds may be absent or forbidden."""
    custom: bool = False
    """True for a workload of somebody's CustomResourceDefinition."""
    metadata_only: bool = False
    selectors: tuple[tuple[str, str], ...] = ()
    """(``fieldSelector`` or ``labelSelector``, its text): which objects of the kind are listed and watched."""
    page: int = 500
    """Objects per page of a list: the default of client-go's pager, fewer where objects are large."""
    trim: Callable[[Raw, str, str], Raw]
    """Maps (object, apiVersion, kind) to what is cached of it; objects of built-in kinds have neither of the
    two in lists."""

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    @property
    def title(self) -> str:
        """The name by which it is followed, logged and measured: that of a custom workload has its group, for Volcano's
        Job is not Kubernetes'."""
        return f"{self.kind}.{self.group}" if self.custom else self.kind

    def path(self, version: str, namespace: str = "", name: str = "") -> str:
        """Return the URL path of the objects in all namespaces or in one, or of a single object.

        Names are quoted: an object written past the API server can have any name.
        """
        where = f"namespaces/{quote(namespace, safe='')}/" if namespace else ""
        which = f"/{quote(name, safe='')}" if name else ""
        return f"/{'apis' if self.group else 'api'}/{self.api_version(version)}/{where}{self.plural}{which}"

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


def key_of(kind: str, value: Raw) -> Key:
    """Return the key of a trimmed object."""
    metadata = value["metadata"]
    return kind, metadata.get("namespace") or "", metadata["name"]


def whole(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim only the metadata: unknown fields of Berth's own kinds must be reported as errors."""
    metadata = value["metadata"]
    kept = {name: metadata[name] for name in METADATA if name in metadata}
    return value | {"apiVersion": api_version, "kind": kind, "metadata": kept}


def spec_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim an object to metadata and spec, from which facts are read.

    A status changes often and holds nothing that Berth uses. Neither does the annotation that names the pod
    claim for which a ResourceClaim was made (``resource.kubernetes.io/pod-claim-name``): anybody may write
    that, and any pod may reference the claim.
    """
    metadata = value["metadata"]
    kept = {name: metadata[name] for name in METADATA if name in metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": kept, "spec": value.get("spec")}


def labels_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim an object to name and labels. Strings are interned: 10,000 nodes have a few hundred different
    labels."""
    metadata = value["metadata"]
    kept = {name: metadata[name] for name in ("name", "resourceVersion", "deletionTimestamp") if name in metadata}
    labels = metadata.get("labels")
    if isinstance(labels, dict):
        kept["labels"] = {sys.intern(k): sys.intern(v) for k, v in labels.items() if isinstance(v, str)}
    return {"apiVersion": api_version, "kind": kind, "metadata": kept}


def node(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a node to labels, taints, the ID by which its cloud knows it, and its extended resources.

    Of these there are few different values on 10,000 nodes: of an ID only the beginning is left, which names the
    cloud. A whole node is 20 KB, most of it the list of its images, which is dropped.
    """
    spec, status = (value.get(part) for part in ("spec", "status"))
    taints, provider = (spec.get("taints"), spec.get("providerID")) if isinstance(spec, dict) else (None, None)
    names = {name for part in AMOUNTS for name in _keys(status, part) if "/" in name}
    kept = labels_alone(value, api_version, kind)
    if isinstance(taints, list) and taints:
        kept["spec"] = {"taints": [_taint(taint) for taint in taints if isinstance(taint, dict)]}
    if isinstance(provider, str) and provider:
        kept.setdefault("spec", {})["providerID"] = sys.intern(provider[: provider.find("://") + 3])
    if names:
        kept["status"] = {part: {sys.intern(name): sys.intern(_text(status, part, name)) for name in sorted(names)} for part in AMOUNTS}
    return kept


def _taint(taint: Raw) -> Raw:
    """Return the taint without the time at which it was added."""
    return {k: sys.intern(v) for k in ("key", "value", "effect") if isinstance(v := taint.get(k), str)}


def _keys(status: Any, part: str) -> list[str]:
    amounts = status.get(part) if isinstance(status, dict) else None
    return [name for name in amounts if isinstance(name, str)] if isinstance(amounts, dict) else []


def _text(status: Any, part: str, name: str) -> str:
    return str(map_of(map_of(status).get(part)).get(name, ""))


def slice_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a ResourceSlice to whose devices it has, and how many."""
    return spec_alone(value, api_version, kind) | {"spec": slimmed(value)}


def discovery_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a ClusterPolicy or GPUCluster to whether it runs GPU Feature Discovery."""
    spec = map_of(value.get("spec"))
    return spec_alone(value, api_version, kind) | {"spec": {"gfd": {"enabled": map_of(spec.get("gfd")).get("enabled")}}}


def quotas_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a ClusterQueue to the flavors of devices, without amounts and who uses them."""
    return spec_alone(value, api_version, kind) | {"spec": admission_queues.slimmed(value)}


_VERSION = API_VERSION.removeprefix(f"{GROUP}/")
_DRA = ("v1", "v1beta2", "v1beta1")
"""resource.k8s.io: v1 since Kubernetes 1.34, v1beta2 since 1.33, v1beta1 since 1.32"""


def _ours(kind: str, plural: str, *, namespaced: bool = False) -> Watched:
    return Watched(kind=kind, plural=plural, group=GROUP, versions=(_VERSION,), namespaced=namespaced, ours=True, required=True, trim=whole)


def _dra(kind: str, plural: str, *, namespaced: bool = False) -> Watched:
    return Watched(kind=kind, plural=plural, group="resource.k8s.io", versions=_DRA, namespaced=namespaced, trim=spec_alone)


def _kueue(kind: str, plural: str, trim: Callable[[Raw, str, str], Raw] = spec_alone, *, namespaced: bool = False) -> Watched:
    versions = ("v1beta2", "v1beta1")  # Kueue 0.19 serves both, older ones the second
    return Watched(kind=kind, plural=plural, group=admission_queues.GROUP, versions=versions, namespaced=namespaced, trim=trim)


QUEUES = (
    _kueue("LocalQueue", "localqueues", namespaced=True),
    _kueue("ClusterQueue", "clusterqueues", quotas_alone),
    _kueue("ResourceFlavor", "resourceflavors"),
)
"""Kueue's, where it is installed. No decision rests on them: authors of workloads are told what waits in a queue for ever."""
SLICES = Watched(kind="ResourceSlice", plural="resourceslices", group="resource.k8s.io", versions=_DRA, page=100, trim=slice_alone)
"""What DRA drivers publish. No decision rests on it: GPUs that are offered twice are told of it."""
KINDS = (
    _ours("ClusterGPUPolicy", "clustergpupolicies"),
    _ours("GPUPolicy", "gpupolicies", namespaced=True),
    _ours("GPUNodeTemplate", "gpunodetemplates"),
    Watched(kind="Namespace", plural="namespaces", group="", versions=("v1",), required=True, metadata_only=True, trim=labels_alone),
    Watched(kind="Node", plural="nodes", group="", versions=("v1",), page=100, trim=node),
    Watched(kind="NodePool", plural="nodepools", group="karpenter.sh", versions=("v1", "v1beta1"), trim=spec_alone),
    _dra("DeviceClass", "deviceclasses"),
    _dra("ResourceClaim", "resourceclaims", namespaced=True),
    _dra("ResourceClaimTemplate", "resourceclaimtemplates", namespaced=True),
    SLICES,
    Watched(kind="ClusterPolicy", plural="clusterpolicies", group=OPERATOR, versions=("v1",), trim=discovery_alone),
    Watched(kind="GPUCluster", plural="gpuclusters", group=OPERATOR, versions=("v1alpha1",), trim=discovery_alone),
    *QUEUES,
)
DECISIVE = tuple(kind for kind in KINDS if kind is not SLICES and kind not in QUEUES)
"""The kinds on which decisions rest."""
