"""The composition root of `berth audit --serve`: one port, one auditor; start and stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import uvloop
from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from starlette.applications import Starlette

from analysis.audit.outcomes import FINDINGS
from analysis.audit.waiting import WAITS
from catalog.prices import prices
from cluster.background import background
from cluster.client.api_client import Access, Client
from cluster.client.errors import AccessError
from documents.prices import read_prices
from policies.document import InputError
from server.limits import GOODBYE, HEALTH_CONNECTIONS, Limits
from server.listener import StartError, listen
from server.server import Server
from sources.sources import SourcesError, of_a_cluster, options
from telemetry import log
from telemetry.exposition import Scraped, exposition, family
from telemetry.watch_metrics import collect_watches
from webhook import health
from webhook.audit.auditor import Auditor
from webhook.health import ReadinessCheck
from webhook.process import Background, bound, cannot_start, logging, on_signals
from webhook.settings import AuditSettings


def run(settings: AuditSettings) -> int:
    """Audit until SIGTERM or SIGINT. Returns the exit code: 0, 2 with one line per reason when it cannot start, or 1 where a
    background task has ended by itself."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, logging(runner.get_loop(), _nothing):
        try:
            return runner.run(_serve(settings))
        except (StartError, SourcesError, AccessError, InputError) as error:
            return cannot_start(str(error))


def _nothing(*_: object) -> None:
    """A dropped log line, or a connection that was ended, is not counted here."""


async def _serve(settings: AuditSettings) -> int:
    stop, at_once = asyncio.Event(), asyncio.Event()
    on_signals(stop, at_once)
    background_tasks = Background(stop)
    catalog, chosen = options(of_a_cluster(settings.sources))
    cost = prices(catalog, read_prices(str(settings.prices), catalog) if settings.prices else None)
    listener = listen("--health", *settings.health)
    client = await Client.connect(Access(settings.cluster.kubeconfig, settings.cluster.context))
    auditor = Auditor(catalog, chosen, cost, settings.cluster, client)
    port = Server(starlette_of(auditor), None, replace(Limits(), connections=HEALTH_CONNECTIONS), _nothing, always=health.PROBES)
    await port.start(listener)
    log.write("listening", listenHealth=bound(listener), version=settings.version)
    audit = asyncio.create_task(background("audit")(auditor.run)())
    await stop.wait()
    audit.cancel()
    await asyncio.wait([audit])
    await port.stop(GOODBYE)
    await client.close()
    code = background_tasks.code
    log.write("stopped", "error" if code else "info", code=code)
    return code


def starlette_of(auditor: Auditor) -> Starlette:
    """Return the application of the port, without TLS: ``/livez``, ``/readyz`` and ``/metrics``."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(Scraped(lambda: collect_watches(auditor.watching(), auditor.count_rejected(), auditor.writes())))
    registry.register(Scraped(lambda: collect_audit(auditor)))
    return health.starlette_of_pages(lambda: checks(auditor), partial(exposition, registry))


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


def collect_audit(auditor: Auditor) -> Iterator[Metric]:
    """Yield the metrics of the audit."""
    inventory, reports = auditor.inventory, auditor.reports
    pods = inventory.ledger.pods.values()
    yield GaugeMetricFamily("berth_audit_pods", "Pods with accelerators that are audited.", len(pods))
    yield GaugeMetricFamily("berth_audit_pods_due", "Pods due for evaluation.", inventory.due)
    findings = Counter(finding for pod in pods for finding in {outcome.finding for outcome in pod.outcomes})
    samples: list[tuple[list[str], float]] = [([finding], findings[finding]) for finding in FINDINGS]
    yield family(GaugeMetricFamily, "berth_audit_findings", "Pods with a finding, by finding.", ["finding"], samples)
    waits = Counter(pod.waits for pod in pods if pod.waits)
    samples = [([reason], waits[reason]) for reason in WAITS]
    text = "Pods with accelerators that have no node, by the reason."
    yield family(GaugeMetricFamily, "berth_pods_waiting", text, ["reason"], samples)
    yield GaugeMetricFamily("berth_audit_reports_due", "Reports due for comparison or writing.", reports.due)
    samples = [([result], getattr(reports.counts, result)) for result in ("written", "deleted", "failed")]
    yield family(CounterMetricFamily, "berth_audit_report_writes", "Report writes, by result.", ["result"], samples)
