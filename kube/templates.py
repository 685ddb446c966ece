"""Pod templates: the pod that a controller makes of one, as admission webhooks receive it, and one pod spec laid over another.

Sources: kubernetes v1.36 pkg/controller (names, labels and owner references of pods), pkg/apis/core/v1/defaults.go (defaults);
for strategic merge patch, without its directives, k8s.io/api/core/v1 types.go, the tags ``patchStrategy`` and ``patchMergeKey``
(a list without them is replaced), and k8s.io/apimachinery pkg/util/strategicpatch (null removes a field). What a controller adds
and nobody reads (a Job's completion index) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple

from kube.pod import CONTAINERS, GRACE, REQUIRED, TERMS
from kube.tree import LARGEST, Path, Raw, map_at, text_of, value_at

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
    template: tuple[str, ...] = ("spec", "template")
    """The path of the pod template."""


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
DAEMONS = _service_account("daemon-set-controller")
"""The user who creates the pods of DaemonSets."""
JOB_TEMPLATE = ("spec", "jobTemplate")
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
        user=DAEMONS,
        pinned=True,
    ),
    ("batch", "Job"): PodMaker(owner=("batch/v1", "Job"), labels=_JOB_LABELS, user=_JOB),
    ("batch", "CronJob"): PodMaker(
        owner=("batch/v1", "Job"),
        owner_name="{name}-" + _MINUTES,
        labels=_JOB_LABELS,
        user=_JOB,
        template=(*JOB_TEMPLATE, "spec", "template"),
    ),
    ("", "ReplicationController"): PodMaker(owner=("v1", "ReplicationController"), user=_service_account("replication-controller")),
}


RETIRED = {"extensions": "apps"}
"""API groups that are no longer served -> the group to which their workloads moved in Kubernetes 1.16."""


def group_of(api_version: str) -> str:
    """Return the API group, ``apps`` of ``apps/v1`` and of ``extensions/v1beta1``; the core group is
    ``""``."""
    group = api_version.rpartition("/")[0]
    return RETIRED.get(group, group)


def pod_of(template: Mapping[str, Any], *, name: str, namespace: str, maker: PodMaker) -> Raw:
    """Return the pod that is made from ``template``, with the defaults of the API server."""
    metadata = template.get("metadata") or {}
    owner = maker.owner_name.format(name=name)
    added = {key: value.format(name=name, owner=owner, uid=_UID) for key, value in maker.labels.items()}
    api_version, kind = maker.owner
    scheduler = {"schedulerName": maker.scheduler} if maker.scheduler else {}
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
            "spec": {**scheduler, **(_pinned(template["spec"]) if maker.pinned else template["spec"])},
        }
    )


def _pinned(spec: Raw) -> Raw:
    affinity = spec.get("affinity") or {}
    node = affinity.get("nodeAffinity") or {}
    return {**spec, "affinity": {**affinity, "nodeAffinity": {**node, REQUIRED: {"nodeSelectorTerms": [_ITS_NODE]}}}}


def is_pinned(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is one of a DaemonSet's template, whose node the controller has not picked."""
    return bool(value_at(pod, TERMS) == [_ITS_NODE])


def pinned(pod: Mapping[str, Any]) -> Raw:
    """Return a pod with the term that the DaemonSet controller writes."""
    return {**pod, "spec": _pinned(pod["spec"])}


def unpinned(pod: Mapping[str, Any], template: Mapping[str, Any]) -> Raw:
    """Return a pod of a DaemonSet with the affinity of its template, by which the controller picks its nodes."""
    spec = {key: value for key, value in pod["spec"].items() if key != "affinity"}
    affinity = map_at(template, "spec", "affinity")
    return {**pod, "spec": {**spec, "affinity": affinity} if affinity else spec}


def bare_pod(manifest: Mapping[str, Any], namespace: str) -> Raw:
    """Return a pod's own manifest as the API server passes it on: with its namespace and the defaults."""
    return with_defaults({**manifest, "metadata": {**(manifest.get("metadata") or {}), "namespace": namespace}})


def with_defaults(pod: Raw) -> Raw:
    """Return the pod without nulls, which decoding drops, and with the defaults that rules read; ``pod``
    is not changed."""
    pod = _without_nulls(pod)
    spec = dict(pod["spec"])
    spec.setdefault(GRACE, GRACE_SECONDS)
    for group in CONTAINERS:
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


_BY_NAME = (*CONTAINERS, "ephemeralContainers", "volumes", "resourceClaims", "imagePullSecrets", "schedulingGates")
_OF_SPEC = {**dict.fromkeys(_BY_NAME, "name"), "hostAliases": "ip", "topologySpreadConstraints": "topologyKey"}
_OF_CONTAINER = {"env": "name", "ports": "containerPort", "volumeMounts": "mountPath", "volumeDevices": "devicePath"}
"""Lists that are merged -> the key by which their items are equal"""


def merge_strategic(spec: Raw, over: Raw) -> Raw:
    """Return ``spec`` with ``over`` laid over it; neither is changed.

    Patches are as deep as their text, which is bounded where it is read. Raises ValueError if a list that is merged has
    an item without its key.
    """
    return _merge_maps(spec, over, _OF_SPEC)


def _merge_maps(under: Raw, over: Raw, keys: Mapping[str, str]) -> Raw:
    """Merge two maps; null removes a key. ``keys``: those of the lists in these maps that are merged."""
    out = dict(under)
    for name, value in over.items():
        before = under.get(name)
        if value is None:
            out.pop(name, None)
        elif name in keys:
            out[name] = _merge_lists(name, before if isinstance(before, list) else [], value, keys[name])
        else:
            out[name] = _merge_maps(before, value, {}) if isinstance(before, dict) and isinstance(value, dict) else value
    return out


def _merge_lists(field: str, under: list[Any], over: Any, key: str) -> list[Any]:
    """Merge two lists in the order of ``over``. The other items come before the first one that they were before
    (``normalizeElementOrder``)."""
    kind = int if key == "containerPort" else str
    if not (isinstance(over, list) and all(isinstance(item, dict) and isinstance(item.get(key), kind) for item in over)):
        raise ValueError(f"{field} must be a list of maps, each with its {key}")
    places = {item.get(key): place for place, item in enumerate(under) if isinstance(item, dict)}
    merged = {places.get(item[key]) for item in over}
    others = [place for place in range(len(under)) if place not in merged]
    out: list[Any] = []
    for item in over:
        place = places.get(item[key])
        while others and place is not None and others[0] < place:
            out.append(under[others.pop(0)])
        out.append(item if place is None else _merge_maps(under[place], item, _OF_CONTAINER if "ontainers" in field else {}))
    return [*out, *(under[place] for place in others)]


def leaves(spec: Raw, patch: Raw) -> Iterator[Path]:
    """Yield the paths in the patched spec of the amounts and fields of a patch."""
    for key, value in patch.items():
        if key not in CONTAINERS or value is None:
            yield (key,)
            continue
        names = [container.get("name") for container in spec[key]]
        for container in value:
            number = names.index(container.get("name"))
            resources = container.get("resources")
            for side, amounts in resources.items() if isinstance(resources, dict) else ():
                yield from ((key, number, "resources", side, name) for name in (amounts if isinstance(amounts, dict) else ()))


class RollingUpdate(NamedTuple):
    """How a Deployment replaces its pods."""

    surge: int
    """Pods that it may have more than it is to have."""
    unavailable: int
    """Pods that may be missing: with 0 no old pod ends before a new one is ready."""


def rolling_update(deployment: Mapping[str, Any]) -> RollingUpdate | None:
    """Return how a Deployment replaces its pods (pkg/controller/deployment/util ``ResolveFenceposts``; defaults of pkg/apis/apps/v1);
    None where it ends all of them first, or where that can't be read."""
    spec = map_at(deployment, "spec")
    strategy = map_at(spec, "strategy")
    if text_of(strategy.get("type")) not in ("", "RollingUpdate"):
        return None
    replicas = spec.get("replicas", 1)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        return None
    written = map_at(strategy, "rollingUpdate")
    surge = _part_of(replicas, written.get("maxSurge"), up=True)
    unavailable = _part_of(replicas, written.get("maxUnavailable"), up=False)
    if surge is None or unavailable is None:
        return None
    return RollingUpdate(surge, unavailable if surge or unavailable else 1)


def _part_of(replicas: int, value: object, *, up: bool) -> int | None:
    """Return a number of pods that is written as such, or as a percentage; 25% where nothing is written."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    digits = text_of("25%" if value is None else value).removesuffix("%")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 6) or digits == value:
        return None
    part = int(digits) * replicas / 100
    return ceil(part) if up else int(part)


_COUNTS = ("replicas", "parallelism", "numNodes", "numOfHosts")
"""Fields that multiply the pods of a template below the map that has them."""


def full_kind(value: Mapping[str, Any]) -> str:
    """Return the kind of an object with its API group, as kubectl takes it: ``Deployment.apps``."""
    group, kind = group_of(str(value.get("apiVersion") or "")), str(value.get("kind") or "object without a kind")
    return f"{kind}.{group}" if group else kind


def pods_at_once(workload: Raw, template: Path) -> int:
    """Return how many pods of the template at this path a workload has at once, as far as its manifest says; at least one.

    Each map above the template may say it: ``spec.replicas``, a Job's ``parallelism`` within its ``completions``, a role's ``replicas``,
    and of a LeaderWorkerSet the workers of a group (``size``, without the leader where it has a template of its own).
    """
    count = 1
    for depth in range(len(template)):
        above = value_at(workload, template[:depth])
        if not isinstance(above, dict):
            continue
        for name in _COUNTS:
            most = above.get("completions") if name == "parallelism" else None
            count *= max(1, min(_count(above.get(name)), _count(most, LARGEST)))
        if template[depth] == "workerTemplate":
            count *= max(1, _count(above.get("size")) - ("leaderTemplate" in above))
    return count


def _count(value: object, default: int = 1) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
