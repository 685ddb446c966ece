"""What a scan reads of a cluster besides its policies: every object cut down to what is judged before the next page
is requested, and pods without devices to where they are and whose."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

from analysis.audit.stored_pod import StoredPod, controller_of, may_hold_devices, stored
from analysis.scan.objects_read import PlainPods
from catalog import Catalog
from cluster.watch.kinds import KINDS, QUEUES, Watched
from cluster.watch.trims import map_of, spec_alone, whole_node
from kube.node import Occupant, occupant
from kube.pod import CONTAINERS, FINISHED
from kube.tree import Raw
from policies.pods.projection import Reads


def kinds(catalog: Catalog, wide: Reads) -> tuple[Watched, ...]:
    """Return the kinds: facts, nodes whole in what they offer, node classes, and pods."""
    facts = tuple(kind for kind in KINDS if not kind.ours and kind not in QUEUES and kind.kind not in ("Node", "NodePool"))
    return (
        *facts,
        replace(next(kind for kind in KINDS if kind.kind == "NodePool"), trim=with_status),
        Watched(kind="Node", plural="nodes", group="", versions=("v1",), page=100, trim=whole_node),
        Watched(kind="EC2NodeClass", plural="ec2nodeclasses", group="karpenter.k8s.aws", versions=("v1", "v1beta1"), trim=spec_alone),
        Watched(kind="Pod", plural="pods", group="", versions=("v1",), namespaced=True, need="required", trim=_pods(catalog, wide)),
    )


def with_status(value: Raw, api_version: str, kind: str) -> Raw:
    """Trim a NodePool to its spec, what its nodes have together, and its conditions."""
    status = map_of(value.get("status"))
    part = {field: status[field] for field in ("resources", "conditions") if field in status}
    return spec_alone(value, api_version, kind) | {"status": part}


def _shared(value: Any) -> Any:
    return sys.intern(value) if isinstance(value, str) else value


def _pods(catalog: Catalog, wide: Reads) -> Any:
    def trim(value: Raw, api_version: str, kind: str) -> Raw:
        spec, metadata = map_of(value.get("spec")), value["metadata"]
        node_name = spec.get("nodeName")
        if map_of(value.get("status")).get("phase") in FINISHED:
            return _NOTHING
        takes = occupant(value)
        trimmed: Raw = {} if takes is None else {"takes": alike.occupant(takes)}
        if may_hold_devices(value):
            one = alike.stored(stored(value, wide))
            return trimmed | {"pod": one} | ({} if one.node else {"waiting": alike.spec(one, spec)})
        if isinstance(node_name, str) and node_name:
            plain = PlainPods(_shared(node_name), _shared(metadata["namespace"]), controller_of(metadata))
            return trimmed | {"plain": plain}
        return _NOTHING

    alike = _Alike()
    return trim


MOST_ALIKE = 20_000
"""Values of a kind that are held once at most; more are forgotten all at once, as in a cluster in which no two pods are alike."""


class _Alike:
    """Holds once what pods that are alike have in common."""

    def __init__(self) -> None:
        self._held: dict[Any, Any] = {}

    def _once(self, key: Any, value: Any) -> Any:
        if len(self._held) >= MOST_ALIKE:
            self._held.clear()
        return self._held.setdefault(key, value)

    def stored(self, pod: StoredPod) -> StoredPod:
        return replace(pod, shared=self._once(pod.shared, pod.shared))

    def occupant(self, takes: Occupant) -> Occupant:
        key = tuple(sorted(takes.requests.items()))
        return takes._replace(node=_shared(takes.node), requests=self._once(key, takes.requests))

    def spec(self, pod: StoredPod, spec: Raw) -> Raw:
        """Return the part of the spec that is about nodes, with the metadata that is judged."""
        part = {field: spec[field] for field in ABOUT_NODES if field in spec}
        part |= {field: [_container(one) for one in spec[field]] for field in CONTAINERS if isinstance(spec.get(field), list)}
        if isinstance(spec.get("volumes"), list):
            part["volumes"] = [{kind: {} for kind in map_of(volume)} for volume in spec["volumes"]]
        whole = {"metadata": json.loads(pod.shared).get("metadata", {}), "spec": part}
        found: Raw = self._once(json.dumps(whole, sort_keys=True), whole)
        return found


def _container(value: Any) -> Raw:
    return {field: one for field, one in map_of(value).items() if field in ("name", "resources", "ports", "restartPolicy")}


ABOUT_NODES = (
    "affinity", "hostNetwork", "nodeName", "nodeSelector", "overhead", "resourceClaims", "resources", "schedulerName",
    "schedulingGates", "tolerations", "topologySpreadConstraints", "terminationGracePeriodSeconds",
)  # fmt: skip
"""Fields of a pod's spec that its place depends on, and that policies write, besides containers and volumes."""
_NOTHING: Raw = {}
"""Stands for a pod of which nothing is judged: the same object for all of them."""
