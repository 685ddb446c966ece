"""`berth audit --serve` beside a cluster, as a process with the rights that it is given when installed, and the definitions of reports."""

from __future__ import annotations

import http.client
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.testcluster import go_build
from tests.testcluster.addons import metrics
from tests.testcluster.addons.berth import COMMAND, environment, logged
from tests.testcluster.calls import PATIENCE, Answer, request_once
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import Process
from tests.testcluster.controlplane.starting import apply_crds
from tests.testcluster.programs import MODULES

OPEN_REPORTS = "github.com/openreports/reports-api"
REPORTS = "openreports.io/v1alpha1"


def install_reports(cluster: Cluster) -> None:
    """The kinds Report and ClusterReport, as their authors publish them."""
    folder = go_build.files(MODULES / "openreports", OPEN_REPORTS, ["config/crd"]) / "config" / "crd"
    apply_crds(cluster.api, sorted(folder.glob("*.yaml")), cluster.processes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One process that audits."""

    process: Process
    health: str

    def metric(self, name: str, /, **labels: str) -> float:
        """The sum of a metric's samples that have these labels; 0.0 where there is none."""
        return metrics.total(self.page("/metrics").body.decode(), name, **labels)

    def page(self, path: str) -> Answer:
        """Of its port."""
        host, _, port = self.health.rpartition(":")
        return request_once(http.client.HTTPConnection(host, int(port), timeout=PATIENCE), "GET", path)

    def events(self, name: str) -> list[Raw]:
        """The lines of its log with this event."""
        return [event for event in logged(self.process.log, self.process.begins) if event["event"] == name]

    def end(self, cluster: Cluster) -> None:
        """By SIGTERM: the Lease is released."""
        cluster.processes.end(self.process)

    def kill(self, cluster: Cluster) -> None:
        """As a machine that goes."""
        cluster.processes.running.remove(self.process)
        self.process.signal(signal.SIGKILL)
        self.process.popen.wait()


def audit(cluster: Cluster, name: str, kubeconfig: Path, *options: str) -> Audit:
    """Started; its port answers, the pods may not be judged yet."""
    command: Sequence[str] = [*COMMAND, "audit", "--serve", "--kubeconfig", str(kubeconfig), "--health", "127.0.0.1:0", *options]
    process = cluster.processes.start(f"audit-{name}", command, environment())

    def listening() -> Raw | None:
        process.check()
        return next((event for event in logged(process.log, process.begins) if event["event"] == "listening"), None)

    at = cluster.wait_for(listening, f"the audit {name} to listen")
    return Audit(process=process, health=at["listenHealth"])
