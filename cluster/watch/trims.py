"""What is cached of the watched objects: each function maps (object, apiVersion, kind) to the part that Berth reads."""

from __future__ import annotations

import sys
from typing import Any

from kube.tree import Raw
from policies.facts import admission_queues, device_requests
from policies.facts.offered_devices import slimmed

METADATA = ("name", "namespace", "uid", "generation", "resourceVersion", "creationTimestamp", "deletionTimestamp")
"""The metadata fields that are cached; managedFields alone is often as large as the rest of an object."""
AMOUNTS = ("capacity", "allocatable")
"""The parts of a node's status that have amounts of resources."""


def map_of(value: object) -> Raw:
    """Return the value if it is a map, else an empty one: objects come from outside."""
    return value if isinstance(value, dict) else {}


def whole(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim only the metadata: unknown fields of Berth's own kinds must be reported as errors."""
    metadata = value["metadata"]
    kept = {name: metadata[name] for name in METADATA if name in metadata}
    return value | {"apiVersion": api_version, "kind": kind, "metadata": kept}


def spec_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim an object to metadata and spec, from which facts are read.

    A status changes often and holds nothing that Berth uses.
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


def requests_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a ResourceClaim or ResourceClaimTemplate to its requests for devices.

    Its annotation that names the pod claim for which it was made (``resource.kubernetes.io/pod-claim-name``) tells nothing: anybody
    may write that, and any pod may reference the claim.
    """
    metadata = value["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if name in metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": kept, "spec": device_requests.slimmed(kind, value)}


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
