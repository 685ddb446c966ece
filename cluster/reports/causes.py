"""The Events on workloads: one for each cause, when a report names it for the first time. What a policy would change is
in the report alone."""

from __future__ import annotations

from collections.abc import Collection

from cluster.reports.stored_reports import Cause, cause_of
from cluster.status.events import About, Events
from cluster.watch.trims import Raw
from policies.audit.ledger import Ledger
from policies.audit.workload_report import Workload

REASONS = {
    "would-refuse": "WouldBeRefused",
    "not-as-enforced": "NotAsEnforced",
    "no-longer-fits": "NoLongerFits",
}
"""Finding -> reason of its Event."""
ACTION = "Audit"


class Causes:
    """Sends Events. They are bounded as those on policies are: a report tells what an Event that was dropped would
    have."""

    def __init__(self, events: Events, ledger: Ledger) -> None:
        self._events = events
        self._ledger = ledger

    def found(self, workload: Workload, report: Raw, new: Collection[Cause]) -> None:
        """Send an Event for each new cause that the report names."""
        for result in report["results"]:
            cause = cause_of(result)
            if cause in new and cause[1] in REASONS:
                about = About(action=ACTION, reason=REASONS[cause[1]], well=False, text=result["message"])
                self._events.add(self._regarding(workload, result), workload.namespace, about)

    def _regarding(self, workload: Workload, result: Raw) -> Raw:
        """Return the workload; of pods that nobody owns one of them, as the Event is in their namespace."""
        if workload.kind != "Namespace":
            return {"apiVersion": workload.api_version, "kind": workload.kind, "name": workload.name, "uid": workload.uid}
        name = result["resources"][0]["name"]
        pod = self._ledger.pods.get((workload.namespace, name))
        return {"apiVersion": "v1", "kind": "Pod", "name": name, **({"uid": pod.stored.uid} if pod is not None else {})}
