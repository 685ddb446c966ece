"""How soon are the reports of `berth audit --serve` there in a cluster full of GPU pods, what do they take, and do replicas notice it?"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.harness.following import PODS_OF_A_JOB, FullCluster, apply_policy, full_cluster
from bench.harness.setting import BenchSetting
from tests.support import results_page
from tests.testcluster.addons import audit, metrics
from tests.testcluster.addons.audit import REPORTS, Audit
from tests.testcluster.controlplane.api import Raw

AMOUNTS, QUICK_AMOUNTS = (2_500, 500, 1_300), (20, 5, 10)
"""Jobs of four pods, namespaces, nodes"""
MOST_SECONDS, MOST_STORED_MB, MOST_CALLS, MOST_MB = 60.0, 5.0, 1.0, 200.0
SPECS: dict[str, Raw] = {
    "grace": {"mode": "Audit", "default": {"gracePeriod": "10m", "protectFor": "12h"}},
    "few": {"mode": "Audit", "require": {"gpusPerPod": {"max": 4}}},
    "taints": {"mode": "Enforce", "default": {"acceleratorTaints": "Tolerate"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedCluster:
    """The cluster and its audits, which share a core with the control plane."""

    full: FullCluster

    def start(self) -> Audit:
        running = audit.audit(self.full.cluster, f"audit-{time.monotonic_ns()}", self.full.kubeconfig)
        os.sched_setaffinity(running.process.popen.pid, {self.full.setting.cores.load})
        return running

    def settle(self, running: Audit, *, more_than: float) -> tuple[float, float]:
        """Wait until nothing is due, and more reports were written than that; return the seconds, and the reports written so far."""
        begun = time.monotonic()

        def is_settled() -> bool | None:
            due = sum(running.metric(name) for name in ("berth_audit_pods_due", "berth_audit_reports_due"))
            return (not due and _written(running) > more_than) or None

        self.full.cluster.wait_for(is_settled, "reports", 600)
        return time.monotonic() - begun, _written(running)

    @contextmanager
    def auditing_again(self) -> Iterator[None]:
        """Let an audit write everything again: no report is there any more."""
        for namespace in self.full.cluster.api.list("v1", "Namespace"):
            self.full.cluster.api.delete_all(REPORTS, "Report", namespace["metadata"]["name"])
        running = self.start()
        yield
        running.end(self.full.cluster)

    def calls(self) -> float:
        """Return the calls to the API server in a second at rest."""
        seconds, totals = self.full.setting.pick(60.0, 2.0), []
        for pause in (5.0, seconds):
            time.sleep(pause)
            totals.append(metrics.total(self.full.cluster.api.text("/metrics"), "apiserver_request_total"))
        return (totals[1] - totals[0]) / seconds


def run(setting: BenchSetting) -> Iterator[str]:
    jobs, namespaces, nodes = setting.pick(AMOUNTS, QUICK_AMOUNTS)
    with full_cluster(setting, "audited", SPECS, jobs, namespaces, nodes) as full:
        audit.install_reports(full.cluster)
        audited = AuditedCluster(full=full)
        yield f"{jobs * PODS_OF_A_JOB:,} GPU pods of {jobs:,} Jobs in {namespaces:,} namespaces, on nodes, admitted by the replica; two"
        yield "policies in Audit, one in Enforce. The audit shares a core with the control plane."
        yield from ("", *_reported(audited), "")
        yield from full.disturbed("the audit begins again", audited.auditing_again)


def _reported(audited: AuditedCluster) -> Iterator[str]:
    """Yield verdicts on an audit that starts, after a policy has changed, and at rest."""
    running, cluster = audited.start(), audited.full.cluster
    first, written = audited.settle(running, more_than=0)
    apply_policy(cluster, "few", {"mode": "Audit", "require": {"gpusPerPod": {"max": 1}}})
    changed, rewritten = audited.settle(running, more_than=written)
    apply_policy(cluster, "few", SPECS["few"])
    audited.settle(running, more_than=rewritten)
    reports = cluster.api.list(REPORTS, "Report")
    size = sum(len(json.dumps(report, separators=(",", ":"))) for report in reports)
    memory, with_audit = running.metric("process_resident_memory_bytes") / 1e6, audited.calls()
    running.end(cluster)
    rows = (
        (f"first full report: {len(reports):,} reports", first, MOST_SECONDS, "s"),
        (f"a policy change: {rewritten - written:,.0f} of them written", changed, MOST_SECONDS, "s"),
        ("all as etcd has them", size / 1e6, MOST_STORED_MB, "MB"),
        ("memory of the process", memory, MOST_MB, "MB"),
        ("API calls at rest", with_audit - audited.calls(), MOST_CALLS, "a second"),
    )
    for claim, measured, most, unit in rows:
        yield results_page.shown(f"{claim}: at most {most:g} {unit}", f"{measured:.2f} {unit}", held=measured <= most)


def _written(running: Audit) -> float:
    return running.metric("berth_audit_report_writes_total", result="written")
