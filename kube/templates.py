"""Build the pod that a workload's controller makes from its template, as admission webhooks receive it.

Sources: kubernetes v1.36 pkg/controller (names, labels and owner references of pods),
pkg/apis/core/v1/defaults.go (defaults). What a controller adds and no rule reads (a Job's completion index)
is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog import Workload
from kube.tree import Raw

GRACE_SECONDS = 30
"""The value of corev1.DefaultTerminationGracePeriodSeconds."""
_UID = "00000000-0000-0000-0000-000000000000"
_HASH = "5d4f8c7b9d"
"""A stand-in for the hash of a template: its form is right, and nothing reads its value."""
_ITS_NODE = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [""]}]}
"""The term that replaces all others in a DaemonSet's pod (pkg/controller/daemon/util
ReplaceDaemonSetPodNodeNameNodeAffinity). "" stands for the node that the controller picks, and is no
node's name."""
_MINUTES = "29000000"
"""The scheduled time in minutes since 1970, by which a CronJob names its Jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMaker:
    """How a controller makes pods.

    ``{name}`` is the workload's name, ``{owner}`` the owner's name, ``{uid}`` the owner's uid.
    """

    owner: tuple[str, str]
    """The apiVersion and kind of the pod's controller."""
    owner_name: str = "{name}"
    labels: Mapping[str, str] = field(default_factory=dict)
    user: str
    """The service account that creates the pods; "" for an operator's, which installations name as they
    like."""
    scheduler: str = ""
    """The schedulerName of pods whose template has none."""
    pinned: bool = False
    """True if each pod is bound to one node, by its affinity."""


def _service_account(controller: str) -> str:
    return f"system:serviceaccount:kube-system:{controller}"


_JOB_LABELS = {
    "batch.kubernetes.io/controller-uid": "{uid}",
    "batch.kubernetes.io/job-name": "{owner}",
    "controller-uid": "{uid}",
    "job-name": "{owner}",
}
_REPLICA_SET = _service_account("replicaset-controller")
_JOB = _service_account("job-controller")
CONTROLLERS: Mapping[tuple[str, str], PodMaker] = {
    ("apps", "Deployment"): PodMaker(
        owner=("apps/v1", "ReplicaSet"), owner_name="{name}-" + _HASH, labels={"pod-template-hash": _HASH}, user=_REPLICA_SET
    ),
    ("apps", "ReplicaSet"): PodMaker(owner=("apps/v1", "ReplicaSet"), user=_REPLICA_SET),
    ("apps", "StatefulSet"): PodMaker(
        owner=("apps/v1", "StatefulSet"),
        labels={
            "apps.kubernetes.io/pod-index": "0",
            "controller-revision-hash": "{name}-" + _HASH,
            "statefulset.kubernetes.io/pod-name": "{name}-0",
        },
        user=_service_account("statefulset-controller"),
    ),
    ("apps", "DaemonSet"): PodMaker(
        owner=("apps/v1", "DaemonSet"),
        labels={"controller-revision-hash": _HASH, "pod-template-generation": "1"},
        user=_service_account("daemon-set-controller"),
        pinned=True,
    ),
    ("batch", "Job"): PodMaker(owner=("batch/v1", "Job"), labels=_JOB_LABELS, user=_JOB),
    ("batch", "CronJob"): PodMaker(owner=("batch/v1", "Job"), owner_name="{name}-" + _MINUTES, labels=_JOB_LABELS, user=_JOB),
    ("", "ReplicationController"): PodMaker(owner=("v1", "ReplicationController"), user=_service_account("replication-controller")),
}


RETIRED = {"extensions": "apps"}
"""API groups that are no longer served -> the group to which their workloads moved in Kubernetes 1.16."""


def group_of(api_version: str) -> str:
    """Return the API group, ``apps`` of ``apps/v1`` and of ``extensions/v1beta1``; the core group is
    ``""``."""
    group = api_version.rpartition("/")[0]
    return RETIRED.get(group, group)


def made_by(api_version: str, kind: str, workload: Workload) -> PodMaker:
    """Return how the pods of a manifest are made: by Kubernetes itself, or as the catalog describes its
    operator."""
    group = group_of(api_version)
    if (group, kind) in CONTROLLERS:
        return CONTROLLERS[group, kind]
    owner_group, owner_kind = owner = _owner((group, kind), workload)
    built_in = CONTROLLERS.get(owner)
    labels = dict(built_in.labels) if built_in else {}
    for label in workload.labels[:1]:
        key, _, value = label.partition("=")
        labels[key] = value or "{name}"
    version = api_version if owner_group == group else f"{owner_group}/v1"
    return PodMaker(
        owner=built_in.owner if built_in else (version, owner_kind),
        labels=labels,
        user=built_in.user if built_in else "",
        scheduler=workload.scheduler,
    )


def _owner(own: tuple[str, str], workload: Workload) -> tuple[str, str]:
    """Return (API group, kind) of the pods' controller."""
    if own in workload.owners:
        return own
    return workload.through or next(iter(workload.owners), own)


def pod_of(template: Mapping[str, Any], *, name: str, namespace: str, made: PodMaker) -> Raw:
    """Return the pod that is made from ``template``, with the defaults of the API server."""
    metadata = template.get("metadata") or {}
    owner = made.owner_name.format(name=name)
    added = {key: value.format(name=name, owner=owner, uid=_UID) for key, value in made.labels.items()}
    api_version, kind = made.owner
    scheduler = {"schedulerName": made.scheduler} if made.scheduler else {}
    return with_defaults(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "generateName": f"{owner}-",
                "namespace": namespace,
                "labels": {**(metadata.get("labels") or {}), **added},
                "annotations": metadata.get("annotations"),
                "ownerReferences": [
                    {"apiVersion": api_version, "kind": kind, "name": owner, "uid": _UID, "controller": True, "blockOwnerDeletion": True}
                ],
            },
            "spec": {**scheduler, **(_pinned(template["spec"]) if made.pinned else template["spec"])},
        }
    )


def _pinned(spec: Raw) -> Raw:
    affinity = spec.get("affinity") or {}
    node = affinity.get("nodeAffinity") or {}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_ITS_NODE]}}
    return {**spec, "affinity": {**affinity, "nodeAffinity": {**node, **required}}}


def bare_pod(manifest: Mapping[str, Any], namespace: str) -> Raw:
    """Return a pod's own manifest as the API server passes it on: with its namespace and the defaults."""
    return with_defaults({**manifest, "metadata": {**(manifest.get("metadata") or {}), "namespace": namespace}})


def with_defaults(pod: Raw) -> Raw:
    """Return the pod without nulls, which decoding drops, and with the defaults that rules read; ``pod``
    is not changed."""
    pod = _without_nulls(pod)
    spec = dict(pod["spec"])
    spec.setdefault("terminationGracePeriodSeconds", GRACE_SECONDS)
    for group in ("initContainers", "containers"):
        if group in spec:
            spec[group] = [_requests_from_limits(container) for container in spec[group]]
    return {**pod, "spec": spec}


def _requests_from_limits(container: Raw) -> Raw:
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    missing = {name: amount for name, amount in limits.items() if name not in requests}
    if not missing:
        return container
    return {**container, "resources": {**resources, "requests": {**requests, **missing}}}


def _without_nulls(value: Raw) -> Raw:
    """Return the same tree without map entries that are null; the very same object if there is none.

    It does not recurse: what an operator's schema lets pass may be nested deeper than Python calls.
    """
    if not _holds_null(value):
        return value
    whole: Raw = _shallow(value)
    todo: list[Any] = [whole]
    while todo:
        parent = todo.pop()
        for key, item in _items(parent):
            if isinstance(item, dict | list):
                parent[key] = _shallow(item)
                todo.append(parent[key])
    return whole


def _holds_null(value: Raw) -> bool:
    todo: list[Any] = [value]
    while todo:
        parent = todo.pop()
        for _, item in _items(parent):
            if item is None and isinstance(parent, dict):
                return True
            if isinstance(item, dict | list):
                todo.append(item)
    return False


def _items(parent: Any) -> Iterable[tuple[Any, Any]]:
    return parent.items() if isinstance(parent, dict) else enumerate(parent)


def _shallow(value: Any) -> Any:
    """Return a copy of one map or list; nulls of a map are left out."""
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else list(value)
