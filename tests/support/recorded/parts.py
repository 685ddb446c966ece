"""Objects of which recorded clusters are made: as the API server stores them, as far as it matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Raw = dict[str, Any]
LONG_AGO = "2026-01-05T08:00:00Z"
GPU = "nvidia.com/gpu"
TAINT: Raw = {"key": GPU, "value": "present", "effect": "NoSchedule"}
TOLERATION: Raw = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}


def node(name: str, labels: Mapping[str, str], devices: Mapping[str, int], *taints: Raw, cpu: str = "96", **more: Any) -> Raw:
    """A node that is ready."""
    amounts = {"cpu": cpu, "memory": "1024Gi", "pods": "110", **{key: str(count) for key, count in devices.items()}}
    common = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**common, **labels}},
        "spec": {"taints": [*taints]} if taints else {},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}], **more},
    }


def pod(
    name: str,
    namespace: str,
    devices: Mapping[str, int | str],
    *,
    on: str = "",
    owner: tuple[str, str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Raw:
    """A pod: bound to a node and running, or waiting. ``owner``: apiVersion, kind and name of its controller."""
    metadata: Raw = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "creationTimestamp": LONG_AGO}
    metadata |= {"labels": dict(labels)} if labels else {}
    metadata |= {"annotations": dict(annotations)} if annotations else {}
    if owner is not None:
        version, kind, owned = owner
        metadata["ownerReferences"] = [
            {"apiVersion": version, "kind": kind, "name": owned, "uid": f"uid-{namespace}-{owned}", "controller": True}
        ]
    amounts = {key: str(amount) for key, amount in devices.items()}
    resources = {"limits": amounts, "requests": {**amounts, "cpu": "1"}} if amounts else {"requests": {"cpu": "1"}}
    whole: Raw = {"terminationGracePeriodSeconds": 30, "containers": [{"name": "main", "image": "image:1", "resources": resources}], **spec}
    if on:
        whole["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole, "status": {"phase": "Running" if on else "Pending"}}


def namespaces(*names: str) -> Iterable[Raw]:
    """Each with the label that all have."""
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one, "labels": {"kubernetes.io/metadata.name": one}}}
        for one in names
    )


def of_group(pods: int, nodes: Sequence[str], make: Any) -> Iterable[Raw]:
    """So many pods, spread over nodes: ``make(number, node)``."""
    return (make(number, nodes[number % len(nodes)]) for number in range(pods))
