"""The findings on every pod, by workload and by policy: updated pod by pod, never counted anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from analysis.audit.outcomes import FINDINGS, AuditResult
from analysis.audit.stored_pod import StoredPod
from analysis.audit.waiting import Waits
from analysis.audit.workload_report import ReportedWorkload, count_by_result, group_by_outcome, report
from policies.objects.crd import COUNTS

PodKey = tuple[str, str]
"""(namespace, name)"""


class AuditedPod(NamedTuple):
    """One pod with the findings on it."""

    stored: StoredPod
    workload: ReportedWorkload
    outcomes: tuple[AuditResult, ...]
    matched: tuple[str, ...]
    """The policies that apply to it."""
    gpus: int
    """The devices that it holds at least."""
    usd: float | None
    """What they cost an hour; None if that is not known."""
    waits: Waits | None = None
    """Why it has no node; None once it has one, and for what is no pod yet."""


class PolicyTotals(NamedTuple):
    """The pods that one policy applies to, and how many of them have each finding. One in Audit or Warn has the first
    two, one in Enforce the last two."""

    pods: int = 0
    would_change: int = 0
    would_deny: int = 0
    not_as_enforced: int = 0
    no_longer_fits: int = 0

    def status(self) -> dict[str, int]:
        """Return the counts as ``status.audit`` of the policy has them (``policies.objects.crd``)."""
        return dict(zip(COUNTS, self, strict=True))


@dataclass(slots=True)
class Ledger:
    """Every pod that asks for an accelerator. Written pod by pod, read by workload and by policy."""

    pods: dict[PodKey, AuditedPod] = field(default_factory=dict)
    _of_workload: dict[ReportedWorkload, set[PodKey]] = field(default_factory=dict)
    _changed: set[ReportedWorkload] = field(default_factory=set)
    _counts: dict[str, Counter[str]] = field(default_factory=dict)
    """Policy -> pods, would-change, would-deny"""

    def put(self, pod: AuditedPod) -> None:
        """Add a pod, or replace the findings on it."""
        key = pod.stored.namespace, pod.stored.name
        before = self.pods.get(key)
        if before is not None:
            self._leave(key, before)
        self.pods[key] = pod
        self._of_workload.setdefault(pod.workload, set()).add(key)
        self._count(pod, 1)
        if before is None or before[1:] != pod[1:] or bool(before.stored.node) != bool(pod.stored.node):
            self._changed.add(pod.workload)
            if before is not None:
                self._changed.add(before.workload)

    def remove(self, key: PodKey) -> None:
        """Forget a pod, if it is known."""
        if (before := self.pods.pop(key, None)) is not None:
            self._leave(key, before)
            self._changed.add(before.workload)

    def copied(self) -> Ledger:
        """Return one with the same pods, which is not changed with this one."""
        of_workload = {workload: set(keys) for workload, keys in self._of_workload.items()}
        counts = {policy: Counter(found) for policy, found in self._counts.items()}
        return Ledger(dict(self.pods), of_workload, set(), counts)

    def changed(self) -> frozenset[ReportedWorkload]:
        """Return the workloads whose report may be another one, each once."""
        found, self._changed = frozenset(self._changed), set()
        return found

    def report(self, workload: ReportedWorkload, api_version: str) -> dict[str, Any] | None:
        """Return the workload's report; None if there are no findings on its pods, or, where it has none, on those that
        it would make."""
        known = [self.pods[key] for key in sorted(self._of_workload.get(workload, ()))]
        pods = [one for one in known if not one.stored.template] or known
        found = group_by_outcome((one.stored, outcome, one.gpus, one.usd) for one in pods for outcome in one.outcomes)
        return report(workload, found, count_by_result(pod.outcomes for pod in pods), api_version) if found else None

    def workloads(self) -> Iterable[ReportedWorkload]:
        """Return the workloads that have pods."""
        return self._of_workload.keys()

    def newest(self, workload: ReportedWorkload) -> str:
        """Return when the workload's newest pod was created; "" if it has no pods."""
        return max((self.pods[key].stored.created for key in self._of_workload.get(workload, ())), default="")

    def totals(self) -> Mapping[str, PolicyTotals]:
        """Return the totals of every policy that applies to some pod."""
        return {policy: PolicyTotals(found["pods"], *(found[finding] for finding in FINDINGS)) for policy, found in self._counts.items()}

    def _leave(self, key: PodKey, pod: AuditedPod) -> None:
        keys = self._of_workload[pod.workload]
        keys.discard(key)
        if not keys:
            del self._of_workload[pod.workload]
        self._count(pod, -1)

    def _count(self, pod: AuditedPod, sign: int) -> None:
        if pod.stored.template:
            return
        for policy in pod.matched:
            found = self._counts.setdefault(policy, Counter())
            found["pods"] += sign
            if not found["pods"]:
                del self._counts[policy]
        for outcome in pod.outcomes:
            for policy in outcome.policies:
                if policy in self._counts:
                    self._counts[policy][outcome.finding] += sign
