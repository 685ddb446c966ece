"""The port of `berth audit --serve`, without TLS: ``/livez``, ``/readyz`` and ``/metrics``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from analysis.audit.outcomes import FINDINGS
from analysis.audit.waiting import WAITS
from server.http import Answer, start, text_answer
from server.routes import response_of, starlette
from telemetry.exposition import exposition
from telemetry.watch_metrics import WatchCollector
from webhook.audit.auditor import Auditor
from webhook.health import ALIVE, NOT_ALLOWED, READY, ReadinessCheck

NOT_FOUND = text_answer(404, "not found; use /livez, /readyz or /metrics")


def starlette_of(auditor: Auditor) -> Starlette:
    """Return the application."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(WatchCollector(auditor.watching, auditor.denied, auditor.writes))
    registry.register(AuditCollector(auditor))

    async def alive(request: Request) -> Response:
        return response_of(text_answer(200, "alive"))

    async def ready(request: Request) -> Response:
        found = list(checks(auditor))
        good = all(check.ready for check in found)
        return response_of(text_answer(200 if good else 503, "\n".join([*map(str, found), "ready" if good else "not ready"])))

    async def metrics(request: Request) -> Response:
        body, content_type = exposition(registry, request.headers.get("accept", ""))
        return response_of(Answer(start(200, b"content-type: %b\r\n" % content_type.encode()), body))

    pages = {ALIVE: alive, READY: ready, "/metrics": metrics}
    return starlette([Route(path, page) for path, page in pages.items()], {404: NOT_FOUND, 405: NOT_ALLOWED})


def checks(auditor: Auditor) -> Iterator[ReadinessCheck]:
    """Yield each check of ``/readyz``, with the details that an engineer on call needs."""
    wrong = [one for one in auditor.watching() if one.error]
    text = "; ".join(f"{watched.kind}: {watched.error}" for watched in wrong) or "every kind is watched"
    yield ReadinessCheck(name="cluster", ready=auditor.update is not None, text=text, is_well=not wrong)
    inventory = auditor.inventory
    text = f"{len(inventory.ledger.pods)} with accelerators, {inventory.due} waiting for evaluation"
    yield ReadinessCheck(name="pods", ready=auditor.settled_once, text=text if auditor.settled_once else "not all listed and evaluated yet")
    lease = "this process writes" if auditor.lease.held else "another process writes, or none yet"
    reports = f"as {auditor.reports.form}, {auditor.reports.due} due" if auditor.reports.form else "none: no report CRD is installed"
    yield ReadinessCheck(name="reports", ready=True, text=f"{reports}; {lease}")


class AuditCollector(Collector):
    """The metrics of the audit, computed at each scrape."""

    def __init__(self, auditor: Auditor) -> None:
        self._auditor = auditor

    def collect(self) -> Iterator[Metric]:
        """Yield them."""
        inventory, reports = self._auditor.inventory, self._auditor.reports
        yield GaugeMetricFamily("berth_audit_pods", "Pods with accelerators that are audited.", len(inventory.ledger.pods))
        yield GaugeMetricFamily("berth_audit_pods_due", "Pods due for evaluation.", inventory.due)
        found = Counter(finding for pod in inventory.ledger.pods.values() for finding in {one.finding for one in pod.outcomes})
        findings = GaugeMetricFamily("berth_audit_findings", "Pods with a finding, by finding.", labels=["finding"])
        for finding in FINDINGS:
            findings.add_metric([finding], found[finding])
        yield findings
        yield self._waiting()
        yield GaugeMetricFamily("berth_audit_reports_due", "Reports due for comparison or writing.", reports.due)
        writes = CounterMetricFamily("berth_audit_report_writes", "Report writes, by result.", labels=["result"])
        for result in ("written", "deleted", "failed"):
            writes.add_metric([result], getattr(reports.counts, result))
        yield writes

    def _waiting(self) -> Metric:
        found = Counter(pod.waits for pod in self._auditor.inventory.ledger.pods.values() if pod.waits)
        waiting = GaugeMetricFamily("berth_pods_waiting", "Pods with accelerators that have no node, by the reason.", labels=["reason"])
        for reason in WAITS:
            waiting.add_metric([reason], found[reason])
        return waiting
