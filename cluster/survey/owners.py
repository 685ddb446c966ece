"""The owners of pods that are owned themselves: a ReplicaSet by its Deployment, a Job by its CronJob."""

from __future__ import annotations

from analysis.audit.stored_pod import controller_of
from cluster.watch.kinds import Watched
from kube.tree import Raw


def owned(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim an object to its uid and its controller."""
    metadata = value["metadata"]
    return {"uid": str(metadata.get("uid") or ""), "owner": controller_of(metadata)}


REPLICA_SETS = Watched(
    kind="ReplicaSet", plural="replicasets", group="apps", versions=("v1",), namespaced=True, metadata_only=True, page=2000, trim=owned
)
OWNERS = (
    REPLICA_SETS,
    Watched(kind="Job", plural="jobs", group="batch", versions=("v1",), namespaced=True, metadata_only=True, page=2000, trim=owned),
)
"""Kinds whose objects are read for their owner alone: uid, and the controller or None."""
