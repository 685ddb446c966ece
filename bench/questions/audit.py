"""How soon are the reports of `berth audit --serve` there in a cluster full of GPU pods, what do they take, and do replicas notice it?"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from bench.harness.following import PODS_OF_A_JOB, apply_policy, control_plane, disturbed, fill_with_jobs, registered
from bench.harness.setting import BenchSetting
from tests.support import results_page
from tests.testcluster.addons import audit, metrics
from tests.testcluster.addons.audit import REPORTS, Audit
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

NAME = "audited"
AMOUNTS, QUICK_AMOUNTS = (2_500, 500, 1_300), (20, 5, 10)
"""Jobs of four pods, namespaces, nodes"""
MOST_SECONDS, MOST_BYTES, MOST_CALLS, MOST_MB = 60.0, 5_000_000, 1.0, 200.0
REST = 60.0
SPECS: dict[str, Raw] = {
    "grace": {"mode": "Audit", "default": {"gracePeriod": "10m", "protectFor": "12h"}},
    "few": {"mode": "Audit", "require": {"gpusPerPod": {"max": 4}}},
    "taints": {"mode": "Enforce", "default": {"acceleratorTaints": "Tolerate"}},
}
STRICTER = {**SPECS["few"], "require": {"gpusPerPod": {"max": 1}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedCluster:
    """The cluster and its audits, which share a core with the control plane."""

    cluster: Cluster
    setting: BenchSetting
    kubeconfig: Path
    numbers: count[int] = field(default_factory=count)

    def start(self) -> Audit:
        """Start an audit."""
        running = audit.audit(self.cluster, f"audit-{next(self.numbers)}", self.kubeconfig)
        os.sched_setaffinity(running.process.popen.pid, {self.setting.cores.load})
        return running

    def settle(self, running: Audit, *, more_than: float) -> float:
        """Return the seconds until nothing is due, and more reports were written than that."""
        begun = time.monotonic()

        def is_settled() -> bool | None:
            due = sum(running.metric(name) for name in ("berth_audit_pods_due", "berth_audit_reports_due"))
            return (not due and _written(running) > more_than) or None

        self.cluster.wait_for(is_settled, "reports", 600)
        return time.monotonic() - begun

    @contextmanager
    def auditing_again(self) -> Iterator[None]:
        """Let an audit write everything again: no report is there any more."""
        for namespace in self.cluster.api.list("v1", "Namespace"):
            self.cluster.api.delete_all(REPORTS, "Report", namespace["metadata"]["name"])
        running = self.start()
        yield
        running.end(self.cluster)

    def calls(self) -> float:
        """Return the calls to the API server in a second at rest."""
        time.sleep(5.0)
        begun, before = time.monotonic(), self._total()
        time.sleep(self.setting.pick(REST, 2.0))
        return (self._total() - before) / (time.monotonic() - begun)

    def _total(self) -> float:
        return metrics.total(self.cluster.api.text("/metrics"), "apiserver_request_total")


def run(setting: BenchSetting) -> Iterator[str]:
    """Yield the section."""
    jobs, namespaces, nodes = setting.pick(AMOUNTS, QUICK_AMOUNTS)
    with control_plane(setting) as cluster:
        audit.install_reports(cluster)
        following, kubeconfig = registered(cluster, setting, NAME, SPECS)
        fill_with_jobs(cluster, NAME, jobs, namespaces, nodes)
        audited = AuditedCluster(cluster=cluster, setting=setting, kubeconfig=kubeconfig)
        yield f"{jobs * PODS_OF_A_JOB:,} GPU pods of {jobs:,} Jobs in {namespaces:,} namespaces, on nodes, admitted by the replica; two"
        yield "policies in Audit, one in Enforce. The audit shares a core with the control plane."
        yield from ("", *_reported(audited), "")
        yield from disturbed(setting, following, "the audit begins again", audited.auditing_again)


def _reported(audited: AuditedCluster) -> Iterator[str]:
    """Yield a table of an audit that starts, after a policy has changed, and at rest."""
    running = audited.start()
    first, written = audited.settle(running, more_than=0), _written(running)
    apply_policy(audited.cluster, "few", STRICTER)
    changed, rewritten = audited.settle(running, more_than=written), _written(running) - written
    apply_policy(audited.cluster, "few", SPECS["few"])
    audited.settle(running, more_than=written + rewritten)
    reports = audited.cluster.api.list(REPORTS, "Report")
    size = sum(len(json.dumps(report, separators=(",", ":"))) for report in reports)
    memory, with_audit = running.metric("process_resident_memory_bytes") / 1e6, audited.calls()
    running.end(audited.cluster)
    calls = with_audit - audited.calls()
    rows = [
        (f"first full report: {len(reports):,} reports", f"{first:.1f} s", f"{MOST_SECONDS:.0f} s", first <= MOST_SECONDS),
        (f"a policy change: {rewritten:,.0f} of them written", f"{changed:.1f} s", f"{MOST_SECONDS:.0f} s", changed <= MOST_SECONDS),
        ("bytes of all as etcd has them", f"{size / 1e6:.1f} MB", f"{MOST_BYTES / 1e6:.0f} MB", size <= MOST_BYTES),
        ("memory of the process", f"{memory:.0f} MB", f"{MOST_MB:.0f} MB", memory <= MOST_MB),
        ("API calls a second at rest", f"{calls:.2f}", f"{MOST_CALLS:.0f}", calls < MOST_CALLS),
    ]
    header = ("what", "measured", "at most", "")
    yield from results_page.table(header, [(*cells, "held" if is_met else "**missed**") for *cells, is_met in rows])


def _written(running: Audit) -> float:
    return running.metric("berth_audit_report_writes_total", result="written")
