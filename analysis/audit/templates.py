"""The pods that a workload would make, as if they were stored: they stand for it while it has none, because it is scaled to
nothing, suspended, waits for its schedule or in a queue, or is denied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, TypeGuard

from analysis.audit.stored_pod import StoredPod, controller_of, may_hold_devices, stored
from catalog import Catalog, Workload
from kube.templates import group_of
from kube.tree import map_at, maps_in, text_of, value_at
from policies.document import Document, InputError
from policies.pods.projection import Reads
from policies.workloads.pods import ALONE, Around, Owner, Templated, pods_of
from policies.workloads.templates import steps, workload_of

MOST = 16
"""Templates of one workload that are judged: Kubernetes' own have one, a RayCluster one for each group of workers."""
MOST_BYTES = 2**16
"""Bytes of all that is judged of one workload's templates: a template with long affinity has 2 KiB. What is past it is
passed over."""
STAND_IN = "template-of-"
"""Begins the uid of an owner that a pod would have, and that does not exist: the ReplicaSet of a Deployment. The workload's
own uid follows."""
ENDS = frozenset({"Complete", "Completed", "Succeeded", "Failed"})
"""Conditions of a workload that is no service and makes no pods any more: of Job (k8s.io/api/batch/v1 JobConditionType), of
JobSet and TrainJob, and of Kubeflow's older jobs."""


def template_pods(
    value: Mapping[str, Any], api_version: str, kind: str, catalog: Catalog, wide: Reads, around: Around = ALONE
) -> tuple[StoredPod, ...]:
    """Return one pod for each template that may ask for devices; () for a workload that has an owner or has finished.

    What can't be read, or only in part, is passed over: the pods may be others. ``around`` finds the objects that the
    workload names, such as a TrainJob's runtime; the pods of one that is not there are unknown.
    """
    metadata = map_at(value, "metadata")
    known = workload_of(catalog, api_version, kind)
    if known is None or controller_of(metadata) is not None or has_finished(value, known):
        return ()
    name, namespace, uid = (text_of(metadata.get(field)) for field in ("name", "namespace", "uid"))
    owner = Owner(api_version=api_version, kind=kind, name=name, namespace=namespace, workload=known)
    document = Document(file="", value={**value, "apiVersion": api_version, "kind": kind})
    created, title = text_of(metadata.get("creationTimestamp")), kind if owner.built_in else f"{kind}.{group_of(api_version)}"
    found: list[StoredPod] = []
    room = MOST_BYTES
    for number, made in enumerate(islice(pods_of(document, owner, catalog, around), MOST)):
        if not _is_whole(made) or not may_hold_devices(made.pod):
            continue
        pod = stored(made.pod, wide, as_written=True)
        if len(pod.shared) > room:
            continue
        room -= len(pod.shared)
        above = pod.owner
        if above is not None:
            itself = (group_of(above.api_version), above.kind) == (group_of(api_version), kind)
            above = above._replace(uid=uid if itself else STAND_IN + uid)
        found.append(
            replace(
                pod, namespace=namespace, name=f"{title}/{name}/{number}", uid=uid, owner=above, node="", created=created, template=True
            )
        )
    return tuple(found)


def _is_whole(made: Templated | InputError) -> TypeGuard[Templated]:
    """Return whether all of the pod is known."""
    return isinstance(made, Templated) and not made.elsewhere and not made.unread


def has_finished(value: Mapping[str, Any], workload: Workload) -> bool:
    """Return whether a workload makes no pods any more."""
    if workload.service:
        return False
    conditions = maps_in(map_at(value, "status").get("conditions"))
    if any(text_of(one.get("type")) in ENDS and one.get("status") == "True" for one in conditions):
        return True
    for text in workload.finished:
        path, _, word = text.partition("=")
        at = value_at(value, steps(path))
        if at is not None and (not word or at == word):
            return True
    return False
