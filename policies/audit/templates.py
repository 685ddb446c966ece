"""The pods that a workload would make, as if they were stored: they stand for it while it has none, because it is scaled to
nothing, suspended, waits for its schedule, or is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from policies.audit.stored_pod import StoredPod, controller_of, stored
from policies.catalog import Catalog
from policies.document import Document, InputError
from policies.pods.projection import Reads
from policies.state.untyped import map_at, maps_in, text_of
from policies.workloads.pods import Owner, pods_of
from policies.workloads.templates import workload_of

MOST = 16
"""Templates of one workload that are judged: Kubernetes' own have one."""
STAND_IN = "template-of-"
"""Begins the uid of an owner that a pod would have, and that does not exist: the ReplicaSet of a Deployment. The workload's
own uid follows."""


def template_pods(value: Mapping[str, Any], api_version: str, kind: str, catalog: Catalog, wide: Reads) -> tuple[StoredPod, ...]:
    """Return one pod for each template; () for a workload that has an owner or has finished, and for what can't be read."""
    metadata = map_at(value, "metadata")
    known = workload_of(catalog, api_version, kind)
    if known is None or controller_of(metadata) is not None or _has_finished(value):
        return ()
    name, namespace, uid = (text_of(metadata.get(field)) for field in ("name", "namespace", "uid"))
    owner = Owner(api_version=api_version, kind=kind, name=name, namespace=namespace, workload=known)
    document = Document(file="", value={**value, "apiVersion": api_version, "kind": kind})
    found = []
    for number, made in enumerate(islice(pods_of(document, owner, catalog), MOST)):
        if isinstance(made, InputError):
            continue
        above = controller_of(map_at(made.pod, "metadata"))
        if above is not None:
            above = above._replace(uid=uid if above.kind == kind else STAND_IN + uid)
        pod = stored(made.pod, wide, as_written=True)
        created = text_of(metadata.get("creationTimestamp"))
        found.append(
            replace(pod, namespace=namespace, name=f"{kind}/{name}/{number}", uid=uid, owner=above, node="", created=created, template=True)
        )
    return tuple(found)


def _has_finished(value: Mapping[str, Any]) -> bool:
    """Return whether a Job makes no pods any more (k8s.io/api/batch/v1 JobConditionType)."""
    conditions = maps_in(map_at(value, "status").get("conditions"))
    return any(one.get("type") in ("Complete", "Failed") and one.get("status") == "True" for one in conditions)
