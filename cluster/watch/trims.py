"""What is cached of the watched objects: each function maps (object, apiVersion, kind) to the part that Berth reads."""

from __future__ import annotations

import sys
from typing import Any

from kube.node import slimmed_node
from kube.tree import Raw
from policies.facts import admission_queues, device_requests
from policies.facts.offered_devices import slimmed

METADATA = ("name", "namespace", "uid", "generation", "resourceVersion", "creationTimestamp", "deletionTimestamp")
"""The metadata fields that are cached; managedFields alone is often as large as the rest of an object."""


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


def interned(value: Any) -> Any:
    """Return maps and lists of them with their strings interned: 10,000 nodes have a few hundred different ones."""
    if isinstance(value, dict):
        return {sys.intern(key): sys.intern(item) if isinstance(item, str) else interned(item) for key, item in value.items()}
    return [interned(item) for item in value] if isinstance(value, list) else value


def labels_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim an object to name and labels."""
    metadata = value["metadata"]
    kept = {name: metadata[name] for name in ("name", "resourceVersion", "deletionTimestamp") if name in metadata}
    labels = metadata.get("labels")
    if isinstance(labels, dict):
        kept["labels"] = interned({k: v for k, v in labels.items() if isinstance(v, str)})
    return {"apiVersion": api_version, "kind": kind, "metadata": kept}


def node(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a node to labels, taints, the cloud that knows it, and its extended resources."""
    return {**labels_alone(value, api_version, kind), **interned(slimmed_node(value, whole=False))}


def whole_node(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a node as ``node`` does, but keep all amounts that it offers and whether it takes pods."""
    return {**labels_alone(value, api_version, kind), **interned(slimmed_node(value, whole=True))}


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
