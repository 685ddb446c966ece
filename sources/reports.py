"""Berth's reports, of a cluster or of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from analysis.audit.stored_report import KINDS, StoredReport, is_ours, stored_report
from documents.files import read_documents
from kube.tree import map_at, text_of
from policies.document import InputError, objects
from sources.sources import Origin

TYPED = "kubectl get reports -A -o json > reports.json"


@dataclass(slots=True, kw_only=True)
class Reports:
    """What was read."""

    found: list[StoredReport] = field(default_factory=list)
    others: int = 0
    """Reports that Berth did not write."""
    not_reports: int = 0
    """Objects of other kinds."""
    twice: int = 0
    """Reports that are there a second time."""
    errors: list[InputError] = field(default_factory=list)
    """On what could not be read."""
    _names: set[tuple[str, str]] = field(default_factory=set)

    def add(self, value: dict[str, Any], namespace: str | None) -> None:
        """Take one object; of another namespace than that asked for it is left."""
        if value.get("kind") not in KINDS:
            self.not_reports += 1
        elif namespace is not None and text_of(map_at(value, "metadata").get("namespace")) != namespace:
            return
        elif not is_ours(value):
            self.others += 1
        else:
            self._take(stored_report(value))

    def _take(self, report: StoredReport) -> None:
        name = report.namespace, report.own_name
        if report.own_name and name in self._names:
            self.twice += 1
        else:
            self._names.add(name)
            self.found.append(report)


def of_files(paths: Sequence[str], namespace: str | None) -> Reports:
    """Read reports as kubectl prints them. Raises InputError if there is none in all of them."""
    reports = Reports()
    given, reports.errors = read_documents(paths)
    for document in given:
        if isinstance(document.value, dict) and "items" in document.value and "kind" not in document.value:
            reports.errors.append(
                document.error((), f"is incomplete: it has items, but no kind: List after them; write it again with {TYPED}")
            )
            continue
        for item in objects(document):
            if isinstance(item, InputError):
                reports.errors.append(item)
            elif isinstance(item.value, dict):
                reports.add(item.value, namespace)
    if reports.not_reports and not (reports.found or reports.others or reports.errors):
        raise InputError(file=paths[0], message=f"has no report, only objects of other kinds; write reports with {TYPED}")
    return reports


def of_cluster(origin: Origin, namespace: str | None, progress: Callable[[str, int], None]) -> Reports:
    """Read those of all namespaces or of one, in the form in which the cluster has them. Raises InputError if it has none, or if they may
    not be read."""
    from cluster.watch.kinds import REPORTS
    from sources.state import read

    survey = read(origin, REPORTS, namespace, progress)
    reports = Reports()
    for form in REPORTS:
        if form.kind in survey.unread:
            continue
        for value in survey.objects[form.kind]:
            reports.add(value, namespace)
        return reports
    raise InputError(file="cluster", message="; ".join(_why(REPORTS, survey.unread, survey.absent, namespace)))


def _why(forms: Sequence[Any], unread: Any, absent: Any, namespace: str | None) -> Iterator[str]:
    if all(form.kind in absent for form in forms):
        yield "no kind of report is installed"
        yield "install the definitions of OpenReports (see docs/audit.md), or remove --reports to evaluate pods now"
        return
    yield from (unread[form.kind] for form in forms if form.kind not in absent)
    yield f"ask for a role that can list them in {namespace}" if namespace else "set a namespace that you can read: --namespace NS"
