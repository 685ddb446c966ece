"""Claims and templates as they are written, and the reviews that the API server sends of them."""

from __future__ import annotations

from typing import Any

from analysis.reviews.claim_review import GROUP, KINDS

Raw = dict[str, Any]


def claim(*requests: Raw, api: str = "v1", template: bool = False, name: str = "gpus") -> Raw:
    """A ResourceClaim, or a template, of these requests as its version has them."""
    spec = {"devices": {"requests": list(requests)}}
    kind = "ResourceClaimTemplate" if template else "ResourceClaim"
    return {"apiVersion": f"{GROUP}/{api}", "kind": kind, "metadata": {"name": name}, "spec": {"spec": spec} if template else spec}


def exactly(device_class: str = "gpu.nvidia.com", count: int | None = 1, **more: Any) -> Raw:
    """One request of v1."""
    amount = {} if count is None else {"allocationMode": "ExactCount", "count": count}
    return {"name": "gpu", "exactly": {"deviceClassName": device_class, **amount, **more}}


def first_of(*choices: Raw) -> Raw:
    """A request that is met by the first of these that there is."""
    return {"name": "gpu", "firstAvailable": [{"name": f"way-{i}", **choice["exactly"]} for i, choice in enumerate(choices)]}


def review_of(made: Raw, *, namespace: str = "ml", user: str = "alice", dry_run: bool = False, uid: str = "u-1") -> Raw:
    """The AdmissionReview of its creation."""
    resource = next(plural for (_, plural), kind in KINDS.items() if kind == made["kind"])
    group, _, version = made["apiVersion"].partition("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": {"group": group, "version": version, "kind": made["kind"]},
            "resource": {"group": group, "version": version, "resource": resource},
            "name": made["metadata"].get("name", ""),
            "namespace": namespace,
            "operation": "CREATE",
            "userInfo": {"username": user},
            "object": made,
            "oldObject": None,
            "dryRun": dry_run,
        },
    }
