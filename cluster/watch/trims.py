"""What is kept of objects: each function maps (object, apiVersion, kind) to the part that Berth reads."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from analysis.audit.stored_pod import PlainPods, StoredPod, controller_of, may_hold_devices, stored
from analysis.world.happenings import happening
from kube.node import Occupant, occupant, registers, slimmed_node
from kube.pod import CONTAINERS, FINISHED
from kube.templates import rolling_update
from kube.tree import Raw, map_at, maps_in, text_of
from policies.facts import admission_queues, device_requests
from policies.facts.offered_devices import slimmed
from policies.pods.projection import Reads

METADATA = ("name", "namespace", "uid", "generation", "resourceVersion", "creationTimestamp", "deletionTimestamp")
"""The metadata fields that are cached; managedFields alone is often as large as the rest of an object."""
NAMES = ("name", "namespace", "resourceVersion")
"""The metadata by which an object is known."""
LEADERS = {"leaderworkerset.sigs.k8s.io/worker-index": "0", "spark-role": "driver"}
"""Labels of pods that own others, by which those belong to a workload: the leader of a LeaderWorkerSet's group owns the
StatefulSet of its workers (sigs.k8s.io/lws pkg/controllers/pod_controller.go), a Spark driver its executors."""
ABOUT_NODES = (
    "affinity", "hostNetwork", "nodeName", "nodeSelector", "overhead", "resourceClaims", "resources", "schedulerName",
    "schedulingGates", "tolerations", "topologySpreadConstraints", "terminationGracePeriodSeconds",
)  # fmt: skip
"""Fields of a pod's spec that its place depends on, and that policies write, besides containers and volumes."""
MOST_ALIKE = 20_000
"""Different values that are held once at most, 20 MB and more where no two pods are alike; then all are forgotten at once."""
_OF_NOBODY: Raw = {"uid": "", "owner": None}
_NOTHING: Raw = {}
"""Stands for a pod of which nothing is judged: the same object for all of them."""


def kept_metadata(value: Raw, fields: Iterable[str] = NAMES) -> Raw:
    """Return the fields of an object's metadata that it has."""
    metadata = value["metadata"]
    return {field: metadata[field] for field in fields if field in metadata}


def untrimmed(value: Raw, api_version: str, kind: str) -> Raw:
    """Return the object with apiVersion and kind."""
    return {**value, "apiVersion": api_version, "kind": kind}


def whole(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim only the metadata: unknown fields of Berth's own kinds must be reported as errors."""
    return value | {"apiVersion": api_version, "kind": kind, "metadata": kept_metadata(value, METADATA)}


def spec_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim an object to metadata and spec, from which facts are read.

    A status changes often and holds nothing that Berth uses.
    """
    return {"apiVersion": api_version, "kind": kind, "metadata": kept_metadata(value, METADATA), "spec": value.get("spec")}


def interned(value: Any) -> Any:
    """Return maps and lists of them with their strings interned: 10,000 nodes have a few hundred different ones."""
    if isinstance(value, dict):
        return {sys.intern(key): sys.intern(item) if isinstance(item, str) else interned(item) for key, item in value.items()}
    return [interned(item) for item in value] if isinstance(value, list) else value


def labels_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim an object to name and labels."""
    kept = kept_metadata(value, ("name", "resourceVersion", "deletionTimestamp"))
    labels = value["metadata"].get("labels")
    if isinstance(labels, dict):
        kept["labels"] = interned({k: v for k, v in labels.items() if isinstance(v, str)})
    return {"apiVersion": api_version, "kind": kind, "metadata": kept}


def node(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a node to labels, taints, the cloud that knows it, and its extended resources."""
    return {**labels_alone(value, api_version, kind), **interned(slimmed_node(value, whole=False))}


def whole_node(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a node as ``node`` does, but keep all amounts that it offers, whether it takes pods, when it was created, and the physical
    devices that a vGPU maker registers."""
    kept = labels_alone(value, api_version, kind)
    kept["metadata"] |= kept_metadata(value, ("creationTimestamp",))
    if annotations := registers(value):
        kept["metadata"]["annotations"] = annotations
    return {**kept, **interned(slimmed_node(value, whole=True))}


def with_status(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a NodePool to its spec, what its nodes have together, and its conditions."""
    status = map_at(value, "status")
    part = {field: status[field] for field in ("resources", "conditions") if field in status}
    return spec_alone(value, api_version, kind) | {"status": part}


def requests_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a ResourceClaim or ResourceClaimTemplate to its requests for devices.

    Its annotation that names the pod claim for which it was made (``resource.kubernetes.io/pod-claim-name``) tells nothing: anybody
    may write that, and any pod may reference the claim.
    """
    kept = kept_metadata(value, ("name", "namespace", "uid", "resourceVersion", "creationTimestamp"))
    return {"apiVersion": api_version, "kind": kind, "metadata": kept, "spec": device_requests.slimmed(kind, value)}


def slice_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a ResourceSlice to whose devices it has, and how many."""
    return spec_alone(value, api_version, kind) | {"spec": slimmed(value)}


def discovery_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a ClusterPolicy or GPUCluster to whether it runs GPU Feature Discovery."""
    enabled = map_at(value, "spec", "gfd").get("enabled")
    return spec_alone(value, api_version, kind) | {"spec": {"gfd": {"enabled": enabled}}}


def quotas_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a ClusterQueue to its flavors and their amounts, without who uses them."""
    return spec_alone(value, api_version, kind) | {"spec": admission_queues.slimmed(value)}


def quotas_and_usage(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a ClusterQueue to its flavors, their amounts, and what is reserved of them."""
    status = map_at(value, "status")
    part = {field: status[field] for field in ("flavorsReservation",) if field in status}
    return quotas_alone(value, api_version, kind) | {"status": part}


def owner_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim an object to its ``uid`` and its ``owner``, the controller or None."""
    metadata = value["metadata"]
    return {"uid": str(metadata.get("uid") or ""), "owner": controller_of(metadata)}


def amounts_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a ResourceQuota to its amounts; its spec is None if it has none."""
    hard = map_at(value, "spec").get("hard")
    amounts = {"hard": {str(name): str(amount) for name, amount in hard.items()}} if isinstance(hard, dict) else None
    return {"metadata": kept_metadata(value), "spec": amounts}


def event_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim an Event to what it tells, a ``Happening`` under ``event``."""
    return {"metadata": {"name": value["metadata"]["name"]}, "event": happening(value)}


class PodTrim:
    """Trims pods. What pods that are alike have in common is held once.

    ``wide``: what any policy may read (``widest``): a pod that may hold devices and has not finished, as few of a cluster do, has
    its StoredPod under ``pod``. None: no pod has one.

    ``places`` False: each object has its names, ``pod`` or None, and ``uid`` and ``owner``, its controller, if it owns others. True:
    an object has what decides about nodes instead. ``takes`` is what it takes of its node. A pod with devices and without a node has
    the part of its spec that is about nodes under ``waiting``; one without devices that is bound has ``plain``, where it is and whose.
    """

    def __init__(self, wide: Reads | None, *, places: bool) -> None:
        self._wide = wide
        self._places = places
        self._held: dict[Any, Any] = {}

    def __call__(self, value: Raw, api_version: str, kind: str) -> Raw:
        is_finished = map_at(value, "status").get("phase") in FINISHED
        pod = None if self._wide is None or is_finished or not may_hold_devices(value) else self._stored(value, self._wide)
        if self._places:
            return self._placed(value, pod) or _NOTHING
        labels = map_at(value, "metadata", "labels")
        leads = any(labels.get(key) == label for key, label in LEADERS.items())
        return {"metadata": kept_metadata(value), "pod": pod, **(owner_alone(value, api_version, kind) if leads else _OF_NOBODY)}

    def _placed(self, value: Raw, pod: StoredPod | None) -> Raw:
        takes, metadata = occupant(value), value["metadata"]
        placed: Raw = {} if takes is None else {"takes": self._occupant(takes)}
        if pod is not None:
            placed["pod"] = pod
            if not pod.node:
                placed["waiting"] = self._about_nodes(pod, map_at(value, "spec"))
        elif takes is not None and self._wide is not None:
            placed["plain"] = PlainPods(sys.intern(takes.node), sys.intern(text_of(metadata["namespace"])), controller_of(metadata))
        return placed

    def _once(self, key: Any, value: Any) -> Any:
        if len(self._held) >= MOST_ALIKE:
            self._held.clear()
        return self._held.setdefault(key, value)

    def _stored(self, value: Raw, wide: Reads) -> StoredPod:
        pod = stored(value, wide)
        return replace(pod, shared=self._once(pod.shared, pod.shared))

    def _occupant(self, takes: Occupant) -> Occupant:
        key = tuple(sorted(takes.requests.items()))
        return takes._replace(node=sys.intern(takes.node), requests=self._once(key, takes.requests))

    def _about_nodes(self, pod: StoredPod, spec: Mapping[Any, Any]) -> Raw:
        """Return the part of the spec that is about nodes, with the metadata that is judged."""
        whole = {"metadata": json.loads(pod.shared).get("metadata", {}), "spec": _placed(spec)}
        about: Raw = self._once(json.dumps(whole, sort_keys=True), whole)
        return about


def daemon_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a DaemonSet to the part of its pod template that is about nodes, and the images."""
    spec = map_at(value, "spec", "template", "spec")
    part = _placed(spec)
    for field in CONTAINERS:
        for kept, container in zip(part.get(field, ()), maps_in(spec.get(field)), strict=False):
            kept["image"] = text_of(container.get("image"))
    return {"apiVersion": api_version, "kind": kind, "metadata": kept_metadata(value), "spec": {"template": {"spec": part}}}


def rolling_alone(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a Deployment to how it replaces its pods, a ``RollingUpdate`` or None under ``rolling``."""
    return {"metadata": kept_metadata(value), "rolling": rolling_update(value)}


def _placed(spec: Mapping[Any, Any]) -> Raw:
    """Return the part of a pod's spec that is about nodes."""
    part = {field: spec[field] for field in ABOUT_NODES if field in spec}
    part |= {field: [_container(container) for container in spec[field]] for field in CONTAINERS if isinstance(spec.get(field), list)}
    if isinstance(spec.get("volumes"), list):
        part["volumes"] = [{kind: {} for kind in map_at(volume)} for volume in spec["volumes"]]
    return part


def _container(value: Any) -> Raw:
    fields = ("name", "resources", "ports", "restartPolicy")
    return {field: part for field, part in map_at(value).items() if field in fields}
