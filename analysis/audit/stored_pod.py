"""A pod as the API server stores it, as far as it is judged and reported: 50,000 of them fit into memory.

The pods of a workload differ in names and in a few labels; what else is judged is the same text, which is
held once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from catalog import Catalog
from kube.pod import FINISHED, MIRROR, OF_NO_CLASS, containers_of, controlling_owner
from kube.review import NODES
from kube.templates import CONTROLLERS
from kube.tree import Raw, map_at, maps_in, text_of
from policies.pods.fractions import fraction_keys
from policies.pods.projection import PARTS, Reads, extract, reads
from policies.request import Request

OF_ONE_POD = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "jobset.sigs.k8s.io/global-replica-index",
        "jobset.sigs.k8s.io/job-global-index",
        "jobset.sigs.k8s.io/job-index",
        "leaderworkerset.sigs.k8s.io/worker-index",
        "statefulset.kubernetes.io/pod-name",
        "training.kubeflow.org/replica-index",
    }
)
"""Labels that controllers give each pod another value of: they are held apart, so that the rest is alike."""
MADE = (("metadata", "annotations"), ("metadata", "labels"), ("spec", "affinity"))
"""Maps that Berth makes where a pod has none, and of which only a part is judged."""
_USERS = {made.owner: made.user for made in CONTROLLERS.values() if made.user}
"""(apiVersion, kind) of a pod's controller -> the account that created it."""


class Controller(NamedTuple):
    """The controlling owner of a pod."""

    api_version: str
    kind: str
    name: str
    uid: str


class PlainPods(NamedTuple):
    """Pods without devices that are bound to one node and have one owner."""

    node: str
    namespace: str
    owner: Controller | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPod:
    """One pod that exists."""

    namespace: str
    name: str
    uid: str
    owner: Controller | None
    node: str
    """The node that it is bound to; "" while it is pending."""
    finished: bool
    created: str
    """Time of creation as the API server writes it: ``2026-11-23T08:00:00Z``."""
    shared: bytes
    """What is judged of it, as JSON: the same object for pods that are alike."""
    whole: tuple[tuple[str, str], ...] = ()
    """Those of ``MADE`` that ``shared`` has whole: if they are empty, the pod has none of them."""
    labels: tuple[tuple[str, str], ...] = ()
    """Those of ``OF_ONE_POD`` that it carries."""
    template: bool = False
    """True if it does not exist, and stands for a workload that has no pods: see ``analysis.audit.templates``."""

    def request(self) -> Request:
        """Return the request by which it was created, as far as that can be known: the account of a pod
        that no controller made is not."""
        pod: Raw = json.loads(self.shared)
        if self.labels:
            pod["metadata"]["labels"].update(self.labels)
        mirror = self.owner is not None and self.owner.kind == "Node" and MIRROR in map_at(pod, "metadata", "annotations")
        user = "" if self.owner is None else _USERS.get(self.owner[:2], "")
        return Request(namespace=self.namespace, user=user, groups=(NODES,) if mirror else (), pod=pod)

    def on_its_node(self, request: Request) -> Request:
        """Return the request of the pod where it runs; the given one while it is pending."""
        if not self.node:
            return request
        return replace(request, pod={**request.pod, "spec": {**request.pod["spec"], "nodeName": self.node}}, phase="validate")


def widest(catalog: Catalog) -> Reads:
    """Return what any policy may read, besides labels, of which every one may be read."""
    return replace(reads((), catalog), parts=PARTS)


def stored(value: Mapping[str, Any], wide: Reads, *, as_written: bool = False) -> StoredPod:
    """Return a pod of the API server. ``wide``: see ``widest``; ``as_written``: the pod is as its author wrote it, and no
    scheduler has seen it.

    Else the node is not taken for the author's, unless the pod's ``managedFields`` say that it was there when the
    pod was created: a scheduler writes it by a binding, which leaves no mark there
    (pkg/registry/core/pod/storage).
    """
    metadata, spec = map_at(value, "metadata"), map_at(value, "spec")
    labels = {key: one for key, one in map_at(metadata, "labels").items() if isinstance(one, str)}
    read = extract({"metadata": metadata, "spec": spec}, wide)
    if labels:
        read["metadata"]["labels"] = {key: one for key, one in labels.items() if key not in OF_ONE_POD}
    for field in OF_NO_CLASS:  # the API server's, for its class or for none
        read["spec"].pop(field, None)
    if not as_written and not _chosen_by_author(metadata):
        read["spec"].pop("nodeName", None)
    return StoredPod(
        namespace=text_of(metadata.get("namespace")),
        name=text_of(metadata.get("name")),
        uid=text_of(metadata.get("uid")),
        owner=controller_of(metadata),
        node=text_of(spec.get("nodeName")),
        finished=map_at(value, "status").get("phase") in FINISHED,
        created=text_of(metadata.get("creationTimestamp")),
        whole=tuple(path for path in MADE if _keys(value, path) == _keys(read, path)),
        shared=json.dumps(read, separators=(",", ":"), sort_keys=True).encode(),
        labels=tuple(sorted((key, one) for key, one in labels.items() if key in OF_ONE_POD)),
    )


def may_hold_devices(value: Mapping[str, Any]) -> bool:
    """Return whether a pod asks for an extended resource of any name, for a claim, or for a part of a GPU by
    annotation: what the catalog knows of it is asked later, when policies are."""
    spec = map_at(value, "spec")
    if spec.get("resourceClaims") or fraction_keys(map_at(value, "metadata", "annotations")):
        return True
    return any(
        "/" in text_of(name)
        for _, container in containers_of(spec)
        for side in ("limits", "requests")
        for name in map_at(container, "resources", side)
    )


def controller_of(metadata: Mapping[str, Any]) -> Controller | None:
    """Return the controlling owner of an object, if it has one."""
    owner = controlling_owner(metadata)
    return Controller(*(text_of(owner.get(field)) for field in ("apiVersion", "kind", "name", "uid"))) if owner else None


def _chosen_by_author(metadata: Mapping[str, Any]) -> bool:
    managers = maps_in(metadata.get("managedFields"))
    return any("f:nodeName" in map_at(one, "fieldsV1", "f:spec") and not one.get("subresource") for one in managers)


def _keys(pod: Mapping[str, Any], path: tuple[str, str]) -> set[str]:
    return set(map_at(pod, *path)) - OF_ONE_POD
