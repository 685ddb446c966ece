"""Pods as they are surveyed: each page is cut down to what is judged before the next one is requested."""

from __future__ import annotations

from dataclasses import replace

from cluster.watch.kinds import Raw, Watched, map_of
from policies.audit.stored_pod import stored
from policies.catalog import Catalog
from policies.pods.permissions import FRACTIONS
from policies.pods.projection import Reads

NOT_FINISHED = ("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed")
"""Finished pods hold nothing: to the watch, a pod that finishes is deleted (k8s.io/kubernetes pkg/registry/core/pod
strategy.go, ToSelectableFields)."""
MOST_TEXTS = 20_000
"""Different texts that are remembered: 20 MB and more where no two pods are alike."""


def pods(catalog: Catalog, wide: Reads) -> Watched:
    """Return the kind Pod. An object has its StoredPod under ``pod``, or None if it asks for no device and holds
    none any more, as most pods of a cluster do."""

    same: dict[bytes, bytes] = {}

    def trim(value: Raw, api_version: str, kind: str) -> Raw:
        metadata = value["metadata"]
        one = stored(value, wide) if may_hold_devices(value) else None
        if one is not None:
            if len(same) >= MOST_TEXTS:
                same.clear()
            one = replace(one, shared=same.setdefault(one.shared, one.shared))
        names = {name: metadata[name] for name in ("name", "namespace", "resourceVersion") if name in metadata}
        return {"metadata": names, "pod": None if one is None or one.finished else one}

    return Watched(
        kind="Pod", plural="pods", group="", versions=("v1",), namespaced=True, required=True, selectors=(NOT_FINISHED,), trim=trim
    )


def may_hold_devices(value: Raw) -> bool:
    """Return whether a pod asks for an extended resource of any name, for a claim, or for a part of a GPU by
    annotation: what the catalog knows of it is asked later, when policies are."""
    spec = map_of(value.get("spec"))
    if spec.get("resourceClaims") or not map_of(map_of(value.get("metadata")).get("annotations")).keys().isdisjoint(FRACTIONS):
        return True
    for field in ("containers", "initContainers"):
        containers = spec.get(field)
        for container in containers if isinstance(containers, list) else ():
            resources = map_of(map_of(container).get("resources"))
            if any("/" in name for side in ("limits", "requests") for name in map_of(resources.get(side))):
                return True
    return False
