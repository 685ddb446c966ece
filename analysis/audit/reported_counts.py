"""The counts by namespace and policy that reports give. A report counts pods with a finding and does not say which pods two findings
share, so a count over several findings is the least that it can be, and known to be no more than that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from analysis.audit.outcomes import FINDINGS, Finding
from analysis.audit.stored_report import StoredReport, StoredResult
from policies.verdict import Mode

Family = tuple[str, ...]
"""Results no two of which are about one pod: a pod has one outcome under a policy in Audit or Warn, one thing that it lacks of all
policies in Enforce, and one denial by all of them."""
ALL = ""
"""Stands for every policy."""


@dataclass(slots=True)
class LowerBound:
    """A number that is at least so much."""

    least: float = 0
    open: bool = False
    """True if it may be more."""

    def add(self, of_families: Sequence[float]) -> None:
        """Add what each family of one workload counts: some may be about the same pods."""
        self.least += max(of_families, default=0)
        self.open = self.open or sum(one > 0 for one in of_families) > 1


@dataclass(slots=True, kw_only=True)
class ReportedLine:
    """The pods of one namespace with findings of one policy, or of all."""

    namespace: str
    policy: str
    modes: set[Mode] = field(default_factory=set)
    pods: LowerBound = field(default_factory=LowerBound)
    gpus: LowerBound = field(default_factory=LowerBound)
    usd: LowerBound | None = None
    """None: not known of any pod."""
    counts: dict[Finding, LowerBound] = field(default_factory=lambda: {finding: LowerBound() for finding in FINDINGS})
    templates: int = 0
    """Pod templates of workloads without pods, which count nowhere else; of several policies each."""

    def add(self, results: Sequence[StoredResult]) -> None:
        """Count the results of one workload."""
        families: dict[Family, list[StoredResult]] = {}
        for one in results:
            families.setdefault(_family(one), []).append(one)
            self.modes |= {one.mode} if one.mode else set()
            self.templates += one.templates
        self.pods.add([sum(one.pods for one in family) for family in families.values()])
        self.gpus.add([sum(one.gpus for one in family) for family in families.values()])
        if any(one.usd is not None for one in results):
            self.usd = self.usd or LowerBound()
            self.usd.add([sum(one.usd or 0.0 for one in family) for family in families.values()])
        for finding, count in self.counts.items():
            count.add([sum(one.pods for one in family if one.finding == finding) for family in families.values()])

    def open(self) -> None:
        """Every count may be more."""
        for count in (self.pods, self.gpus, *self.counts.values(), *([self.usd] if self.usd else [])):
            count.open = True


def _family(result: StoredResult) -> Family:
    enforced = result.finding in ("not-as-enforced", "no-longer-fits")
    return (result.finding,) if enforced else result.policies


def reported_lines(reports: Iterable[StoredReport]) -> list[ReportedLine]:
    """Return a line for each namespace with findings, and one for each policy that has some there."""
    found: dict[tuple[str, str], ReportedLine] = {}
    open_in = set()
    for report in reports:
        if report.left_out or report.damaged:
            open_in.add(report.namespace)
        named = {policy for one in report.results for policy in one.policies}
        for policy in (ALL, *named) if report.results else ():
            line = found.setdefault((report.namespace, policy), ReportedLine(namespace=report.namespace, policy=policy))
            line.add([one for one in report.results if policy == ALL or policy in one.policies])
    for (namespace, _), line in found.items():
        if namespace in open_in:
            line.open()
    return [found[key] for key in sorted(found)]
