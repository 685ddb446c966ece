"""Events on workloads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from analysis.audit.ledger import Ledger
from analysis.audit.workload_report import OPEN_REPORTS, ReportedWorkload, count_by_result, group_by_outcome, report
from cluster.reports.causes import Causes
from cluster.status.events import Events
from tests.analysis.audit.test_workload_report import JOB, outcome, pods


class Sent:
    """Takes every Event."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def add(self, regarding: object, namespace: str, about: Any) -> bool:
        self.reasons.append(about.reason)
        return True


def _sent(workload: ReportedWorkload, *, created: bool) -> list[str]:
    outcomes = [outcome("would-deny"), outcome("no-longer-fits", mode="Enforce")]
    stored = pods(1) if created else [replace(pod, template=True) for pod in pods(1)]
    found = group_by_outcome((pod, one, 1, None) for one in outcomes for pod in stored)
    events = Sent()
    causes = Causes(cast("Events", events), Ledger())
    assert causes.send(workload, report(workload, found, count_by_result([outcomes]), OPEN_REPORTS), frozenset())
    return events.reasons


def test_pods_that_never_were_no_longer_fit_nothing() -> None:
    """Of a workload whose pods are denied the API server's own Event tells; what a policy in Audit would deny, only Berth does."""
    assert sorted(_sent(JOB, created=True)) == ["NoLongerFits", "WouldBeDenied"]
    assert _sent(JOB, created=False) == ["WouldBeDenied"]
