"""Pods as they are surveyed: each page is cut down to what is judged before the next one is requested."""

from __future__ import annotations

from dataclasses import replace

from analysis.audit.stored_pod import may_hold_devices, stored
from catalog import Catalog
from cluster.survey.owners import owned
from cluster.watch.kinds import Watched
from cluster.watch.trims import map_of
from kube.tree import Raw
from policies.pods.projection import Reads

NOT_FINISHED = ("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed")
"""Finished pods hold nothing: to the watch, a pod that finishes is deleted (k8s.io/kubernetes pkg/registry/core/pod
strategy.go, ToSelectableFields)."""
LEADERS = {"leaderworkerset.sigs.k8s.io/worker-index": "0", "spark-role": "driver"}
"""Labels of pods that own others, by which those belong to a workload: the leader of a LeaderWorkerSet's group owns the
StatefulSet of its workers (sigs.k8s.io/lws pkg/controllers/pod_controller.go), a Spark driver its executors."""
_OF_NOBODY: Raw = {"uid": "", "owner": None}
MOST_TEXTS = 20_000
"""Different texts that are remembered: 20 MB and more where no two pods are alike."""


def pods(catalog: Catalog, wide: Reads) -> Watched:
    """Return the kind Pod. An object has its StoredPod under ``pod``, or None if it asks for no device and holds
    none any more, as most pods of a cluster do. Of one that owns others itself there are ``uid`` and ``owner``, its
    controller."""

    same: dict[bytes, bytes] = {}

    def trim(value: Raw, api_version: str, kind: str) -> Raw:
        metadata = value["metadata"]
        one = stored(value, wide) if may_hold_devices(value) else None
        if one is not None:
            if len(same) >= MOST_TEXTS:
                same.clear()
            one = replace(one, shared=same.setdefault(one.shared, one.shared))
        names = {name: metadata[name] for name in ("name", "namespace", "resourceVersion") if name in metadata}
        pod = None if one is None or one.finished else one
        return {"metadata": names, "pod": pod, **(owned(value, api_version, kind) if _leads(metadata) else _OF_NOBODY)}

    return Watched(
        kind="Pod", plural="pods", group="", versions=("v1",), namespaced=True, need="required", selectors=(NOT_FINISHED,), trim=trim
    )


def _leads(metadata: Raw) -> bool:
    labels = map_of(metadata.get("labels"))
    return any(labels.get(key) == value for key, value in LEADERS.items())
