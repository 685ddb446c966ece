"""The Events on workloads: one for each cause, when a report names it for the first time. What a policy would change is
in the report alone. Where the cluster has no kind of report, the causes of which an Event was sent are remembered here; a
process that starts sends them again, under the same names, and the API server has those of the last hour."""

from __future__ import annotations

from analysis.audit.ledger import Ledger
from analysis.audit.workload_report import ReportedWorkload
from cluster.reports.stored_reports import Cause, ReportKey, cause_of, causes
from cluster.status.events import About, Events
from kube.tree import Raw

REASONS = {
    "would-deny": "WouldBeDenied",
    "not-as-enforced": "NotAsEnforced",
    "no-longer-fits": "NoLongerFits",
}
"""Finding -> reason of its Event."""
ACTION = "Audit"


class Causes:
    """Sends Events. They are bounded as those on policies are."""

    def __init__(self, events: Events, ledger: Ledger) -> None:
        self._events = events
        self._ledger = ledger
        self._sent: dict[ReportKey, frozenset[Cause]] = {}

    def send(self, workload: ReportedWorkload, report: Raw, stored: frozenset[Cause]) -> bool:
        """Send an Event for each cause that is new in a report. Return False if some were over the rate.

        ``stored``: the causes that the report named until now, of which other processes may have sent Events.
        """
        key, named = (workload.namespace, workload.report_name), causes(report)
        sent = named & (stored | self._sent.get(key, frozenset()))
        for result in report["results"]:
            cause = cause_of(result)
            if cause not in sent and self._add(workload, result, cause):
                sent |= {cause}
        self._sent[key] = sent
        return sent == named

    def forget(self, key: ReportKey) -> None:
        """Forget the Events of a workload without causes."""
        self._sent.pop(key, None)

    def _add(self, workload: ReportedWorkload, result: Raw, cause: Cause) -> bool:
        created = result["properties"]["pods"] != "0"
        if cause[1] not in REASONS or (cause[1] == "no-longer-fits" and not created):  # of pods that never were, FailedCreate tells
            return True
        identity = "/".join((*workload, *cause))
        about = About(action=ACTION, reason=REASONS[cause[1]], well=False, text=result["message"], identity=identity)
        return self._events.add(self._regarding(workload, result), workload.namespace, about)

    def _regarding(self, workload: ReportedWorkload, result: Raw) -> Raw:
        """Return the workload; of pods that nobody owns one of them, as the Event is in their namespace."""
        if workload.kind != "Namespace":
            return {"apiVersion": workload.api_version, "kind": workload.kind, "name": workload.name, "uid": workload.uid}
        name = result["resources"][0]["name"]
        pod = self._ledger.pods.get((workload.namespace, name))
        return {"apiVersion": "v1", "kind": "Pod", "name": name, **({"uid": pod.stored.uid} if pod is not None else {})}
