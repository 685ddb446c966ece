"""Pods with findings, counted by policy and namespace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from analysis.audit.ledger import AuditedPod
from analysis.audit.outcomes import FINDINGS, Finding

CLUSTER = "ClusterGPUPolicy/"
"""How the ids of policies of the whole cluster begin."""
LABELS: Mapping[Finding, str] = {
    "would-change": "would be changed",
    "would-deny": "would be denied",
    "not-as-enforced": "missing edits",
    "no-longer-fits": "would be denied today",
}
"""The labels of findings in a list of pods."""


@dataclass(slots=True)
class PolicyCount:
    """Pods to which a policy applies."""

    pods: int = 0
    gpus: int = 0
    usd: float | None = None
    """What their devices cost an hour, as far as that is known."""
    usd_found: float | None = None
    """Of those with a finding."""
    findings: dict[Finding, int] = field(default_factory=lambda: dict.fromkeys(FINDINGS, 0))

    def add(self, pod: AuditedPod, found: set[Finding]) -> None:
        """Count one more pod."""
        self.pods += 1
        self.gpus += pod.gpus
        if pod.usd is not None:
            self.usd = (self.usd or 0.0) + pod.usd
            if found:
                self.usd_found = (self.usd_found or 0.0) + pod.usd
        for finding in found:
            self.findings[finding] += 1

    @property
    def changed(self) -> int:
        """Pods that a policy in Audit or Warn would change, or that lack what one in Enforce writes."""
        return self.findings["would-change"] + self.findings["not-as-enforced"]

    @property
    def denied(self) -> int:
        """Pods that it would deny."""
        return self.findings["would-deny"] + self.findings["no-longer-fits"]

    def join(self, other: PolicyCount) -> None:
        """Add the pods of another namespace."""
        self.pods += other.pods
        self.gpus += other.gpus
        self.usd = _sum(self.usd, other.usd)
        self.usd_found = _sum(self.usd_found, other.usd_found)
        for finding, number in other.findings.items():
            self.findings[finding] += number


def _sum(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else one + other


Listed = tuple[bool, bool]
"""Whether ClusterGPUPolicies, and whether GPUPolicies of a namespace, may be listed."""

_LISTED: tuple[Listed, ...] = ((True, True), (True, False), (False, True), (False, False))


@dataclass(frozen=True, slots=True)
class WorldCounts:
    """All pods, counted once for each world."""

    cells: Mapping[str, Mapping[str, PolicyCount]]
    """Policy -> namespace -> the pods that it is for."""
    every: Mapping[str, Mapping[Listed, PolicyCount]]
    """Namespace -> by the policies that may be listed -> its pods, each once, with the findings of those policies."""


def counts(pods: Iterable[AuditedPod], policies: Iterable[str]) -> WorldCounts:
    """Count the pods by the policies in force."""
    cells: dict[str, dict[str, PolicyCount]] = {id_: {} for id_ in policies}
    every: dict[str, dict[Listed, PolicyCount]] = {}
    for pod in pods:
        namespace = pod.stored.namespace
        of_pod: dict[str, set[Finding]] = {}
        found: dict[bool, set[Finding]] = {True: set(), False: set()}
        for outcome in pod.outcomes:
            for id_ in outcome.policies:
                of_pod.setdefault(id_, set()).add(outcome.finding)
                found[id_.startswith(CLUSTER)].add(outcome.finding)
        for id_ in pod.matched:
            if id_ in cells:
                cells[id_].setdefault(namespace, PolicyCount()).add(pod, of_pod.get(id_, set()))
        for listed, count in every.setdefault(namespace, {listed: PolicyCount() for listed in _LISTED}).items():
            count.add(pod, (found[True] if listed[0] else set()) | (found[False] if listed[1] else set()))
    return WorldCounts(cells, every)
