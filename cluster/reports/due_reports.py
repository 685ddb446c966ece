"""Which reports are to be compared with what is stored, and what each should be."""

from __future__ import annotations

from collections.abc import Iterable

from analysis.audit.ledger import Ledger
from analysis.audit.workload_report import ReportedWorkload
from cluster.reports.stored_reports import ReportKey
from kube.tree import Raw


class DueReports:
    """The reports that may differ from the ledger. One stays due until ``done`` or ``postpone`` is called."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._workloads: dict[ReportKey, set[ReportedWorkload]] = {}
        self._due: dict[ReportKey, None] = {}
        self._later: dict[ReportKey, float] = {}

    def __len__(self) -> int:
        return len(self._due) + len(self._later)

    def first(self, most: int) -> list[ReportKey]:
        """Return at most so many of those that are due, those that wait longest first."""
        return [key for key, _ in zip(self._due, range(most), strict=False)]

    def every_workload(self) -> None:
        """Make the reports of all workloads due."""
        for workload in self._ledger.workloads():
            self._note(workload)

    def collect(self, now: float) -> None:
        """Make due what has changed in the ledger, and what was postponed until now."""
        for workload in self._ledger.changed():
            self._note(workload)
        for key in [key for key, at in self._later.items() if at <= now]:
            del self._later[key]
            self._due[key] = None

    def add(self, keys: Iterable[ReportKey]) -> None:
        """Make reports due, of whatever workloads they are."""
        self._due |= dict.fromkeys(keys)

    def _note(self, workload: ReportedWorkload) -> None:
        key = workload.namespace, workload.report_name
        self._workloads.setdefault(key, set()).add(workload)
        self._due[key] = None

    def done(self, key: ReportKey) -> None:
        """Take it that a report is as it should be."""
        self._due.pop(key, None)

    def postpone(self, key: ReportKey, at: float) -> None:
        """Make a report due at a later time."""
        self.done(key)
        self._later[key] = at

    def forget(self) -> None:
        """Forget all reports and workloads: ``every_workload`` brings them back."""
        self._workloads.clear()
        self._due.clear()
        self._later.clear()

    def wanted(self, key: ReportKey, api_version: str) -> tuple[ReportedWorkload, Raw] | None:
        """Return what the report should be, with its workload: the newest, where one was replaced by another of the
        same name. None if there should be none."""
        found = {one: newest for one in self._workloads.get(key, ()) if (newest := self._ledger.newest(one))}
        if not found:
            self._workloads.pop(key, None)
            return None
        self._workloads[key] = set(found)
        workload = max(found, key=lambda one: (found[one], one))
        report = self._ledger.report(workload, api_version)
        return None if report is None else (workload, report)
