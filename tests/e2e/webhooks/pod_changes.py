"""All that becomes of a pod after its creation: each as what is done, by whom a cluster has for it, and what must then come true.

A new pod for each, so that none hides another. The kubelet's part is kwok's, which cannot resize or debug: of these only what is stored
is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.testcluster.controlplane.api import JSON_PATCH, MERGE, STRATEGIC, Raw, Reply
from tests.testcluster.controlplane.cluster import RUNS_FOR, Cluster

TRACKED = "batch.kubernetes.io/job-tracking"
HELD = "example.com/hold"
GATE = "example.com/wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """The pods, and Jobs, of a namespace in which changes are tried, all made from one pod spec."""

    cluster: Cluster
    namespace: str
    spec: Raw

    def create(self, changes: Sequence[Change]) -> None:
        """What the changes are made on; it runs, or waits where it is gated. Raises ApiError, ClusterFailed."""
        for change in changes:
            self.cluster.api.create(self._job(change) if change.of_job else self._pod(change), self.namespace)
        for change in changes:
            self.cluster.wait_for(lambda change=change: self._begun(change), f"what is to be {change.name}")  # type: ignore[misc]

    def _pod(self, change: Change) -> Raw:
        metadata = {"name": change.name, **change.metadata}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**self.spec, **change.spec}}

    def _job(self, change: Change) -> Raw:
        template = {"metadata": {"annotations": {RUNS_FOR: "1h"}}, "spec": {**self.spec, "restartPolicy": "Never"}}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": change.name}, "spec": {"template": template}}

    def _begun(self, change: Change) -> bool:
        found = self.of(change)
        return bool(found) and ("schedulingGates" in found[0]["spec"] or found[0]["status"]["phase"] == "Running")

    def of(self, change: Change) -> list[Raw]:
        """As they stand."""
        if change.of_job:
            return self.cluster.api.list("v1", "Pod", self.namespace, labelSelector=f"job-name={change.name}")
        return self.cluster.api.list("v1", "Pod", self.namespace, fieldSelector=f"metadata.name={change.name}")

    def job(self, change: Change) -> Raw | None:
        return self.cluster.api.get("batch/v1", "Job", change.name, self.namespace)

    def call(self, method: str, path: str, body: Any = None, *, content: str = MERGE, **query: str) -> Reply:
        """On a pod of the namespace: NAME or NAME/SUBRESOURCE. Any status is returned."""
        return self.cluster.api.call(method, f"/api/v1/namespaces/{self.namespace}/pods/{path}", body, content=content, **query)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is done to a pod of this name."""

    name: str
    begin: Callable[[Pods, Change], Sequence[Reply]]
    """the calls that a person or controller makes; each must succeed"""
    done: Callable[[Pods, Change], bool]
    """what then comes true"""
    of_job: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)


def _gone(pods: Pods, change: Change) -> bool:
    return not pods.of(change)


def _delete(pods: Pods, change: Change) -> list[Reply]:
    return [pods.call("DELETE", change.name)]


def _delete_and_let_go(pods: Pods, change: Change) -> list[Reply]:
    return [pods.call("DELETE", change.name), pods.call("PATCH", change.name, {"metadata": {"finalizers": None}})]


def _evict(pods: Pods, change: Change) -> list[Reply]:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": change.name, "namespace": pods.namespace}}
    return [pods.call("POST", f"{change.name}/eviction", body, content="application/json")]


def _delete_job(propagation: str) -> Callable[[Pods, Change], list[Reply]]:
    def begin(pods: Pods, change: Change) -> list[Reply]:
        path = f"/apis/batch/v1/namespaces/{pods.namespace}/jobs/{change.name}"
        return [pods.cluster.api.call("DELETE", path, propagationPolicy=propagation)]

    return begin


def _orphaned(pods: Pods, change: Change) -> bool:
    metadata = [pod["metadata"] for pod in pods.of(change)]
    return pods.job(change) is None and [m for m in metadata if "ownerReferences" in m or TRACKED in m.get("finalizers", ())] == []


def _resize(pods: Pods, change: Change) -> list[Reply]:
    """Once the kubelet has said what it runs with, which kwok does not say."""
    spec = pods.of(change)[0]["spec"]["containers"][0]
    reported = {"status": {"containerStatuses": [{"name": spec["name"], "resources": spec["resources"]}]}}
    wanted = {"spec": {"containers": [{"name": spec["name"], "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}}]}}
    calls = (("status", reported), ("resize", wanted))
    return [pods.call("PATCH", f"{change.name}/{subresource}", patch, content=STRATEGIC) for subresource, patch in calls]


def _resized(pods: Pods, change: Change) -> bool:
    return [pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] for pod in pods.of(change)] == ["2"]


def _let_end(pods: Pods, change: Change) -> list[Reply]:
    """Of the Job's pod: kwok takes what the annotation says now."""
    return [pods.call("PATCH", pod["metadata"]["name"], {"metadata": {"annotations": {RUNS_FOR: "100ms"}}}) for pod in pods.of(change)]


def _complete(pods: Pods, change: Change) -> bool:
    conditions = {one["type"]: one["status"] for one in (pods.job(change) or {}).get("status", {}).get("conditions", ())}
    tracked = [pod for pod in pods.of(change) if TRACKED in pod["metadata"].get("finalizers", ())]
    return conditions.get("Complete") == "True" and not tracked


def _patched(name: str, patch: Any, found: Callable[[Raw], bool], *, content: str = MERGE, subresource: str = "", **more: Any) -> Change:
    """A change that is one PATCH; ``found`` tells it from the pod."""
    where = f"/{subresource}" if subresource else ""
    return Change(
        name=name,
        begin=lambda pods, change: [pods.call("PATCH", change.name + where, patch, content=content)],
        done=lambda pods, change: any(map(found, pods.of(change))),
        **more,
    )


def tolerated(name: str, toleration: Raw) -> Change:
    """One more toleration."""
    patch = [{"op": "add", "path": "/spec/tolerations/-", "value": toleration}]
    return _patched(name, patch, lambda pod: toleration in pod["spec"]["tolerations"], content=JSON_PATCH)


_CONDITION = {"type": "example.com/seen", "status": "True"}
_DEBUG = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "debug:1"}]}}

CHANGES = (
    Change(name="finished", begin=_let_end, done=_complete, of_job=True),
    Change(name="deleted", begin=_delete, done=_gone),
    Change(name="deleted-and-let-go", begin=_delete_and_let_go, done=_gone, metadata={"finalizers": [HELD]}),
    Change(name="evicted", begin=_evict, done=_gone),
    Change(name="deleted-with-its-job", begin=_delete_job("Background"), done=_gone, of_job=True),
    Change(name="orphaned", begin=_delete_job("Orphan"), done=_orphaned, of_job=True),
    _patched(
        "ungated",
        {"spec": {"schedulingGates": None}},
        lambda pod: bool(pod["spec"].get("nodeName")) and pod["status"]["phase"] == "Running",
        spec={"schedulingGates": [{"name": GATE}]},
    ),
    _patched("labelled", {"metadata": {"labels": {"a": "b"}}}, lambda pod: pod["metadata"].get("labels", {}).get("a") == "b"),
    _patched("annotated", {"metadata": {"annotations": {"a": "b"}}}, lambda pod: pod["metadata"]["annotations"].get("a") == "b"),
    _patched("limited", {"spec": {"activeDeadlineSeconds": 9000}}, lambda pod: pod["spec"].get("activeDeadlineSeconds") == 9000),
    _patched(
        "with-another-image",
        {"spec": {"containers": [{"name": "main", "image": "i:2"}]}},
        lambda pod: pod["spec"]["containers"][0]["image"] == "i:2",
        content=STRATEGIC,
    ),
    _patched(
        "told-of",
        {"status": {"conditions": [_CONDITION]}},
        lambda pod: any(_CONDITION.items() <= one.items() for one in pod["status"]["conditions"]),
        content=STRATEGIC,
        subresource="status",
    ),
    _patched("debugged", _DEBUG, lambda pod: "ephemeralContainers" in pod["spec"], content=STRATEGIC, subresource="ephemeralcontainers"),
    Change(name="resized", begin=_resize, done=_resized),
    tolerated("tolerating-more", {"key": "example.com/slow", "operator": "Exists", "effect": "NoSchedule"}),
)
