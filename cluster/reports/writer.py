"""The writer of reports: one that differs from the stored one is applied, or deleted where nothing is found any more. Server-side
apply has the same result however often it is sent. A cluster without a kind of report gets Events alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from analysis.audit.ledger import Ledger
from analysis.audit.workload_report import OPEN_REPORTS, ReportedWorkload
from cluster.client.api_client import APPLY
from cluster.client.errors import Reply
from cluster.reconciler import Correction, Reconciler
from cluster.reports.causes import Causes
from cluster.reports.stored_reports import ReportForm, ReportKey, StoredObject, as_stored, choice, digest
from kube.tree import Raw, map_at

EVENTS_AGAIN = 30.0
"""Seconds after which Events over the rate are sent again, where no report has what they tell."""
OWNER = {"fieldManager": "berth-audit", "force": "true"}
"""The query of what is applied."""
FormKey = tuple[str, ReportKey]
"""(apiVersion of the report, its key); the apiVersion is "" on a cluster that has no kind of report"""


@dataclass(kw_only=True)
class ReportWriter(Reconciler[FormKey]):
    """Brings stored reports up to date with a ledger. At its rate, 10,000 reports take 50 s."""

    task: ClassVar[str] = "reports"
    event: ClassVar[str] = "report_failed"
    overtaken: ClassVar[tuple[int, ...]] = ()  # no version is sent: a conflict is an error

    ledger: Ledger
    forms: tuple[ReportForm, ...]
    """The preferred one first."""
    causes: Causes
    rate: float = 200.0
    at_once: int = 8
    rest: float = 0.5
    again: float = 2.0
    _form: ReportForm | None = None
    _text: str = ""
    _is_complete: bool = False
    """False until all workloads and stored reports were added to the queue, after which changes are."""
    _workloads: dict[ReportKey, set[ReportedWorkload]] = field(default_factory=dict)

    @property
    def form(self) -> str:
        """The apiVersion of the reports; "" while the cluster has no kind for them."""
        return self._form.api_version if self._form is not None else ""

    def forget(self) -> None:
        """Forget what has changed, too: all reports are due again with the Lease."""
        super().forget()
        self.ledger.changed()
        for form in self.forms:
            form.stored.changed()
        self._workloads.clear()
        self._is_complete = False

    async def collect(self) -> bool:
        """Choose the form of reports, and add the reports of which the workload or the stored report has changed."""
        self._choose()
        if not self._text:
            return False  # whether the cluster has a kind of report is not known yet
        changed = self.ledger.changed()
        for workload in changed if self._is_complete else self.ledger.workloads():
            key = workload.namespace, workload.report_name
            self._workloads.setdefault(key, set()).add(workload)
            self.add([(self.form, key)])
        for form in self.forms:
            stored = form.stored.changed()
            self.add((form.api_version, key) for key in (stored if self._is_complete else form.stored.reports))
        self._is_complete = True
        return True

    def _choose(self) -> None:
        """Choose the first form that the cluster has, once it is known of all of them whether it has them."""
        if not all(form.followed.synced for form in self.forms):
            return
        usable, text = choice(self.forms)
        if usable is not self._form:
            self._form = usable
            self._is_complete = False
        if text != self._text:
            self.tell("reports", text=text)
        self._text = text

    def correction(self, key: FormKey) -> Correction | None:
        """Return the write of one report, or its deletion.

        Reports of another form than the chosen one are deleted: they were written before the cluster had this one.
        Without a form, send the Events of the workload; those over the rate are sent later.
        """
        api_version, report_key = key
        form = next((form for form in self.forms if form.api_version == api_version), None)
        if form is not self._form:
            return self._deletion(form, key)
        wanted = self._wanted(report_key)
        if wanted is None:
            self.causes.forget(report_key)
            return self._deletion(form, key)
        workload, report = wanted
        if form is not None:
            return self._application(form, workload, report)
        if not self.causes.send(workload, report, frozenset()):
            self.postpone(key, EVENTS_AGAIN)
        return None

    def _wanted(self, key: ReportKey) -> tuple[ReportedWorkload, Raw] | None:
        """Return what the report should be, with its workload: the newest, where one was replaced by another of the
        same name. None if there should be none."""
        created = {workload: at for workload in self._workloads.get(key, ()) if (at := self.ledger.newest(workload))}
        if not created:
            self._workloads.pop(key, None)
            return None
        self._workloads[key] = set(created)
        newest = max(created, key=lambda workload: (created[workload], workload))
        report = self.ledger.report(newest, self.form or OPEN_REPORTS)
        return None if report is None else (newest, report)

    def _deletion(self, form: ReportForm | None, key: FormKey) -> Correction | None:
        """Return the deletion of a report that should not exist; None if there is none, or Berth may not read it."""
        stored = form.stored.reports.get(key[1]) if form is not None and form.usable else None
        if form is None or stored is None:
            self.drop(key)
            return None
        return Correction(
            subject=f"report {'/'.join(key[1])}",
            desired=None,
            stored=stored.digest,
            answered=partial(self._take_deletion, form, key[1]),
            path=form.path(key[1]),
            method="DELETE",
        )

    def _application(self, form: ReportForm, workload: ReportedWorkload, report: Raw) -> Correction | None:
        """Return the server-side apply of a report; None if it is stored as it should be."""
        key, desired = (workload.namespace, workload.report_name), digest(report)
        stored = form.stored.reports.get(key)
        if stored is not None and stored.digest == desired:
            return None
        return Correction(
            subject=f"report {'/'.join(key)}",
            desired=desired,
            stored=stored.digest if stored is not None else None,
            answered=partial(self._take_report, form, workload, report, stored),
            path=form.path(key),
            body=report,
            content=APPLY,
            query=OWNER,
        )

    def _take_report(self, form: ReportForm, workload: ReportedWorkload, report: Raw, stored: StoredObject | None, reply: Reply) -> str:
        """Remember a report as it is stored now, and return its digest. Its Events are sent even if it was denied."""
        self.causes.send(workload, report, stored.causes if stored is not None else frozenset())
        if not reply.ok:
            return ""
        stored = form.stored.reports[workload.namespace, workload.report_name] = as_stored(dict(map_at(reply.body)))
        return stored.digest

    def _take_deletion(self, form: ReportForm, key: ReportKey, reply: Reply) -> None:
        """Forget a report that is deleted: by this writer, or by the garbage collector once its owner was deleted."""
        if reply.ok or reply.status == 404:
            form.stored.reports.pop(key, None)
