"""The findings on stored pods under one snapshot; pods that are alike are evaluated once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction

from analysis.audit.audited_decision import audit_pod
from analysis.audit.ledger import AuditedPod
from analysis.audit.outcomes import AuditResult, audit_results
from analysis.audit.stored_pod import Controller, StoredPod
from analysis.audit.waiting import Waits, reason
from analysis.audit.workload_report import ReportedWorkload
from catalog.prices import Prices
from kube.templates import group_of
from policies.lru import LruCache
from policies.state.snapshot import Snapshot

MOST_CACHED = 32 * 2**20
"""Bytes: some ten thousand different pods, or one of each of ten thousand workloads."""
_OVERHEAD = 2048
MOST_OWNERS = 8
"""Owners of owners that are followed: an InferenceService is six above the pods of its Knative Service; more is a circle that
somebody made."""

Owners = Mapping[str, Controller]
"""uid of an object -> its own controller."""
Versions = Mapping[tuple[str, str], str]
"""(API group, kind) -> the apiVersion in which such objects are followed."""
_Result = tuple[tuple[AuditResult, ...], tuple[str, ...], int, Fraction, Waits | None]


def workload_of(pod: StoredPod, owners: Owners, versions: Mapping[tuple[str, str], str] = {}) -> ReportedWorkload:
    """Return the owner of the pod that no other object owns, as far as owners are known; of a pod without
    one, its namespace. It is named in the version in which it is followed: references to one may have others."""
    owner = pod.owner
    if owner is None:
        return ReportedWorkload("v1", "Namespace", pod.namespace, pod.namespace, "")
    for _ in range(MOST_OWNERS):
        above = owners.get(owner.uid)
        if above is None:
            break
        owner = above
    version = versions.get((group_of(owner.api_version), owner.kind), owner.api_version)
    return ReportedWorkload(version, owner.kind, pod.namespace, owner.name, owner.uid)


class Assessment:
    """Evaluates pods under one snapshot."""

    def __init__(self, snapshot: Snapshot, prices: Prices, owners: Owners, versions: Mapping[tuple[str, str], str] = {}) -> None:
        self._snapshot = snapshot
        self._prices = prices
        self._owners = owners
        self._versions = versions
        self._cache: LruCache[tuple[_Result | None]] = LruCache(MOST_CACHED)

    def of(self, pod: StoredPod) -> AuditedPod | None:
        """Return the pod with its findings; None if it asks for no accelerator."""
        key = pod.namespace, pod.shared, pod.labels, self._kind(pod.node), pod.whole, pod.template, pod.owner and pod.owner[:2]
        cached = self._cache.get((key, "")) or self._cache.get((key, pod.node))
        if cached is None:
            cached = (self._audit(pod),)
            named = cached[0] is not None and any(outcome.finding == "no-longer-fits" for outcome in cached[0][0])
            self._cache.keep((key, pod.node if named else ""), cached, _OVERHEAD + len(pod.shared))
        if cached[0] is None:
            return None
        found, matched, gpus, devices, waits = cached[0]
        each = self._prices.of_device(self._snapshot.cluster.nodes.get(pod.node, {})) if pod.node else None
        usd = None if each is None else each * float(devices)
        return AuditedPod(pod, workload_of(pod, self._owners, self._versions), found, matched, gpus, usd, waits)

    def _kind(self, node: str) -> Hashable:
        """Return what a verdict reads of a node; a denial names the node besides."""
        labels = self._snapshot.cluster.nodes.get(node)
        return node if labels is None else (tuple(sorted(labels.items())), self._snapshot.cluster.taints.get(node, ()))

    def _audit(self, pod: StoredPod) -> _Result | None:
        facts = self._snapshot.facts_for(pod.namespace)
        audited = audit_pod(pod, facts)
        if audited is None:
            return None
        if pod.template:  # its pods get what they lack when they are created
            audited = audited._replace(missing=())
        waits = None if pod.node or pod.template else reason(pod.request(), facts)
        return tuple(audit_results(audited)), audited.matched, audited.gpus.least, audited.devices, waits
