"""Where a workload stands in Kueue, in plain words, with what to type next. Kueue's own words are quoted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from analysis.admission.manifests import Manifest
from analysis.kueue import places, waiting
from analysis.kueue.waiting import QueuePosition
from analysis.why.explanation import Queued
from analysis.why.surroundings import Surroundings
from documents.printable import printable
from kube.tree import map_at, text_of
from policies.pods.actors import QUEUE_NAME
from policies.state.snapshot import NamespaceFacts
from policies.workloads.pods import describing

WIDEST = 300
"""Characters of what Kueue says that are shown."""
_PENDING: Mapping[str, tuple[str, str]] = {
    "": ("no condition gives a reason: Kueue has not processed it yet, or found no room for a similar workload", "{workload}"),
    "NoMatchingFlavor": ("no flavor of its ClusterQueue fits it", "kubectl get resourceflavors -o yaml"),
    "WaitingForQuota": ("other workloads use the quota that it needs", "kubectl get workloads.kueue.x-k8s.io -n {namespace}"),
    "ExceedsMaxQuota": ("it requests more than its ClusterQueue may ever use: request less, or name another queue", "{queues}"),
    "TopologyPlacementFailed": ("its topology has no room for it", "kubectl get topologies.kueue.x-k8s.io -o yaml"),
    "WaitingForPreemptedWorkloads": ("other workloads are being preempted for it", "kubectl get workloads.kueue.x-k8s.io -n {namespace}"),
    "Misconfigured": ("its queue is misconfigured", "{describe}"),
    "Inadmissible": ("its queue can't admit it", "{describe}"),
    "Suspended": ("its queue is stopped", "{queues}"),
    "OnHold": ("its queue is stopped", "{queues}"),
    "AdmissionGated": ("it has an admission gate", "{workload}"),
    "PendingEvaluation": ("Kueue has not processed it yet", "{workload}"),
    "WaitingForPodsReady": ("the pods of another workload must be ready first", "kubectl get workloads.kueue.x-k8s.io -n {namespace}"),
}
"""Reasons of the condition QuotaReserved: what that means, and what to type."""
_EVICTED: Mapping[str, str] = {
    "Preempted": "it was preempted and waits to be admitted again",
    "PodsReadyTimeout": "its pods were not ready in time, and it waits to be admitted again",
    "AdmissionCheck": "an admission check revoked its quota",
    "ClusterQueueStopped": "its ClusterQueue was stopped",
    "LocalQueueStopped": "its LocalQueue was stopped",
    "NodeFailures": "its nodes failed, and it waits to be admitted again",
}


def find_position(asked: Surroundings, made_of: Manifest | None, facts: NamespaceFacts) -> Queued | None:
    """Return where the object stands in Kueue; None if it names no queue of Kueue's, or whether Kueue has a Workload of it is not known."""
    uids = [map_at(one, "metadata").get("uid") for one in (*asked.pods, *asked.owners, asked.value)]
    found = waiting.newest_workload(asked.queued, uids)
    value = made_of.value if made_of is not None else asked.value
    label = text_of(map_at(value, "metadata", "labels").get(QUEUE_NAME))
    if found is None and (not label or "workloads" in asked.unread):
        return None
    position = QueuePosition("unseen", label) if found is None else waiting.read_position(found)
    fact, next_ = _words(position, asked.namespace)
    stuck = position.state in ("unseen", "pending") or (position.state == "admitted" and not asked.pods)
    told = _told(value, asked.namespace, facts) if stuck else ""
    return Queued(position=position, fact=fact, next=told or next_)


def _told(value: Mapping[str, Any], namespace: str, facts: NamespaceFacts) -> str:
    """Return what the author was told when the workload was made: its queue has no place for it; "" if it may have one."""
    api_version, kind, name = text_of(value.get("apiVersion")), text_of(value.get("kind")), text_of(map_at(value, "metadata").get("name"))
    owner = describing(facts.snapshot.catalog, api_version, kind, name=name, namespace=namespace)
    return next(map(str, places.remarks(value, owner, facts)), "") if owner is not None else ""


def _words(one: QueuePosition, namespace: str) -> tuple[str, str]:
    """Return what a standing means, and what to type next."""
    types = {
        "namespace": namespace,
        "queues": f"kubectl get localqueues -n {namespace}",
        "describe": f"kubectl describe localqueue {one.queue} -n {namespace}",
        "workload": f"kubectl describe workloads.kueue.x-k8s.io {one.workload} -n {namespace}",
    }
    match one.state:
        case "unseen":
            return "Kueue has no Workload for it: it does not manage this kind, or does not run", "kubectl get pods -n kueue-system"
        case "finished":
            return "Kueue counts it as finished", types["workload"]
        case "inactive":
            on = f'kubectl patch workloads.kueue.x-k8s.io {one.workload} -n {namespace} --type merge -p \'{{"spec":{{"active":true}}}}\''
            return "Kueue has deactivated it and no longer admits it", on
        case "admitted":
            unready = " (its pods are not ready)" if one.ready is False else ""
            return f"Kueue has admitted it{_flavors(one, 'to')}{unready}", types["workload"]
        case "reserved":
            names = ", ".join(f"{check.name} ({check.state})" for check in one.checks)
            wait = f"it has quota{_flavors(one, 'of')} and waits for " + (f"admission checks: {names}" if names else "its admission")
            return wait, types["workload"]
    fact, next_ = _PENDING.get(one.reason, ("it has no quota yet", "{workload}"))
    before = _EVICTED.get(one.evicted, f"it was evicted ({one.evicted})") if one.evicted else ""
    return "; ".join(filter(None, (before, fact))), next_.format_map(types)


def _flavors(one: QueuePosition, how: str) -> str:
    return f" {how} flavor {', '.join(one.flavors)}" if one.flavors else ""


def position_lines(one: Queued) -> Iterator[str]:
    """Yield what is shown."""
    position = one.position
    of_cluster = f" (ClusterQueue {position.cluster_queue})" if position.cluster_queue else ""
    yield f"Queue {position.queue}{of_cluster} of Kueue: {one.fact}."
    if position.state != "admitted" and position.message:
        yield f'  Kueue says ({position.reason}): "{printable(" ".join(position.message.split()), WIDEST)}"'
    for check in position.checks:
        if check.message:
            yield f'  {check.name} says: "{printable(" ".join(check.message.split()), WIDEST)}"'
    if position.state != "finished":
        yield f"  Next: {one.next}"


def position_value(one: Queued) -> dict[str, Any]:
    """Return it as maps and lists."""
    position = one.position
    every = {
        "state": position.state,
        "queue": position.queue,
        "clusterQueue": position.cluster_queue,
        "workload": position.workload,
        "flavors": list(position.flavors),
        "reason": position.reason,
        "message": position.message,
        "evicted": position.evicted,
        "podsReady": position.ready,
        "checks": [check._asdict() for check in position.checks],
        "fact": one.fact,
        "next": one.next,
    }
    return {key: found for key, found in every.items() if found not in ("", [], None)}
