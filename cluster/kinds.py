"""What is watched: which kinds, in which versions, and what is kept of each object."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from policies.policy import API_VERSION, GROUP
from policies.stored import Key

Raw = dict[str, Any]
METADATA = ("name", "namespace", "uid", "generation", "resourceVersion", "creationTimestamp", "deletionTimestamp")
"""What is kept of an object's metadata; managedFields alone is often as large as the rest"""
PARTIAL = "PartialObjectMetadata"
PARTIAL_ACCEPT = "application/json;as={};g=meta.k8s.io;v=v1"
"""The API server sends metadata alone (k8s.io/apimachinery, meta/v1 PartialObjectMetadata)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One kind."""

    kind: str
    plural: str
    group: str
    """"" is the core group"""
    versions: tuple[str, ...]
    """tried in this order"""
    namespaced: bool = False
    ours: bool = False
    """a CustomResourceDefinition of Berth's"""
    required: bool = False
    """without it nothing can be decided; the others may be absent or forbidden"""
    metadata_only: bool = False
    page: int = 500
    """objects that are listed at once: as client-go's pager has it, fewer where each is large"""
    trim: Callable[[Raw, str, str], Raw]
    """(object, its apiVersion, its kind) to what is kept of it; built-in kinds come without the two in lists"""

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    def path(self, version: str, namespace: str = "", name: str = "") -> str:
        """Of all its objects, in all namespaces or in one; of one of them. Quoted: past the API server an object can have any name."""
        where = f"namespaces/{quote(namespace, safe='')}/" if namespace else ""
        which = f"/{quote(name, safe='')}" if name else ""
        return f"/{'apis' if self.group else 'api'}/{self.api_version(version)}/{where}{self.plural}{which}"

    def accept(self, list_or_watch: str) -> str:
        """The header, for "list" or "watch"."""
        if not self.metadata_only:
            return "application/json"
        return PARTIAL_ACCEPT.format(PARTIAL + ("List" if list_or_watch == "list" else ""))

    @property
    def resource(self) -> str:
        """As RBAC and kubectl name it: nodepools.karpenter.sh"""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def definition(self) -> str | None:
        """The path of our CustomResourceDefinition; None for kinds of others."""
        return f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.resource}" if self.ours else None


def key_of(kind: str, value: Raw) -> Key:
    """Of an object that was trimmed."""
    metadata = value["metadata"]
    return kind, metadata.get("namespace") or "", metadata["name"]


def whole(value: Raw, api_version: str, kind: str) -> Raw:
    """Everything but most of the metadata: fields of ours that nobody knows are errors to be told."""
    metadata = value["metadata"]
    kept = {name: metadata[name] for name in METADATA if name in metadata}
    return value | {"apiVersion": api_version, "kind": kind, "metadata": kept}


def spec_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Facts are read from specs: a status changes often, and says nothing to us. Nor does who a claim says that it was made for
    (``resource.kubernetes.io/pod-claim-name``): anybody may write that, and any pod may name the claim."""
    metadata = value["metadata"]
    kept = {name: metadata[name] for name in METADATA if name in metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": kept, "spec": value.get("spec")}


def labels_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Of 10,000 nodes there are a few hundred different labels: each text is kept once."""
    metadata = value["metadata"]
    kept = {name: metadata[name] for name in ("name", "resourceVersion", "deletionTimestamp") if name in metadata}
    labels = metadata.get("labels")
    if isinstance(labels, dict):
        kept["labels"] = {sys.intern(k): sys.intern(v) for k, v in labels.items() if isinstance(v, str)}
    return {"apiVersion": api_version, "kind": kind, "metadata": kept}


def node(value: Raw, api_version: str, kind: str) -> Raw:
    """Labels, taints, and which extended resources it offers, without amounts: of 10,000 nodes there are a few different ones of each.
    A node is 20 KB, most of it the list of its images, of which nothing is held."""
    spec, status = (value.get(part) for part in ("spec", "status"))
    taints = spec.get("taints") if isinstance(spec, dict) else None
    names = {name for part in ("capacity", "allocatable") for name in _keys(status, part) if "/" in name}
    kept = labels_alone(value, api_version, kind)
    if isinstance(taints, list) and taints:
        kept["spec"] = {"taints": [_taint(taint) for taint in taints if isinstance(taint, dict)]}
    if names:
        kept["status"] = {"capacity": dict.fromkeys(sorted(sys.intern(name) for name in names), "")}
    return kept


def _taint(taint: Raw) -> Raw:
    """Without the time at which it was added."""
    return {k: sys.intern(v) for k in ("key", "value", "effect") if isinstance(v := taint.get(k), str)}


def _keys(status: Any, part: str) -> list[str]:
    amounts = status.get(part) if isinstance(status, dict) else None
    return [name for name in amounts if isinstance(name, str)] if isinstance(amounts, dict) else []


_VERSION = API_VERSION.removeprefix(f"{GROUP}/")
_DRA = ("v1", "v1beta2", "v1beta1")
"""resource.k8s.io: v1 since Kubernetes 1.34, v1beta2 since 1.33, v1beta1 since 1.32"""


def _ours(kind: str, plural: str, *, namespaced: bool = False) -> Watched:
    return Watched(kind=kind, plural=plural, group=GROUP, versions=(_VERSION,), namespaced=namespaced, ours=True, required=True, trim=whole)


def _dra(kind: str, plural: str, *, namespaced: bool = False) -> Watched:
    return Watched(kind=kind, plural=plural, group="resource.k8s.io", versions=_DRA, namespaced=namespaced, trim=spec_alone)


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
)
