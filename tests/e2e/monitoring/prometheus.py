"""A Prometheus beside a cluster, as a process: it reads Berth, the audit and the API server each second, with the labels that the targets
of the chart's monitors have."""

from __future__ import annotations

import json
import math
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.testcluster import programs
from tests.testcluster.addons.berth import Berth
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import Process, free_port

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """One that runs."""

    process: Process
    url: str

    def asked(self, path: str, **query: str) -> Any:
        """The data of one answer of its API. An error of a query is raised with its text."""
        data = urllib.parse.urlencode(query).encode() if query else None
        try:
            with urllib.request.urlopen(f"{self.url}{path}", data, timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {query}: {error.read().decode()}") from None

    def numbers(self, query: str) -> list[float]:
        """The values of an instant query that are numbers."""
        found = self.asked("/api/v1/query", query=query)["result"]
        return [number for one in found if math.isfinite(number := float(one["value"][1]))]

    def has(self, query: str) -> bool:
        """Whether a query has data."""
        return bool(self.numbers(query))

    def rules(self) -> list[Raw]:
        """Every rule that it evaluates, with its health."""
        return [rule for group in self.asked("/api/v1/rules")["groups"] for rule in group["rules"]]


def started(cluster: Cluster, rules: Path, berth: Berth, audit: str) -> Prometheus:
    """Ready: its API answers. ``audit``: host and port of the audit's metrics."""
    address, folder = f"127.0.0.1:{free_port()}", cluster.folder / "prometheus"
    folder.mkdir()
    of_cluster = {"tls_config": {"ca_file": str(cluster.api.ca)}, "authorization": {"credentials": cluster.api.token}, "scheme": "https"}
    config: Raw = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            _job("berth-system/berth", berth.health.removeprefix("http://"), pod="berth-0", container="berth"),
            _job("berth-system/berth-audit", audit, pod="berth-audit-0", container="audit"),
            _job("apiserver", f"{cluster.api.host}:{cluster.api.port}") | of_cluster,
        ],
    }
    (folder / "prometheus.json").write_text(json.dumps(config))  # JSON is YAML
    command = [
        str(programs.path("prometheus")),
        f"--config.file={folder / 'prometheus.json'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    found = Prometheus(process=cluster.processes.start("prometheus", command, {}), url=f"http://{address}")
    cluster.wait_for(lambda: _answers(found), "Prometheus to answer")
    return found


def _job(name: str, target: str, **labels: str) -> Raw:
    """As the Prometheus operator makes it of a PodMonitor: its labels are the target's, and win over a metric's of the same name."""
    more: Mapping[str, str] = {"namespace": "berth-system", "endpoint": "health", **labels} if labels else {}
    return {"job_name": name, "honor_labels": False, "static_configs": [{"targets": [target], "labels": dict(more)}]}


def _answers(prometheus: Prometheus) -> bool:
    prometheus.process.check()
    try:
        with urllib.request.urlopen(f"{prometheus.url}/-/ready", timeout=PATIENCE) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
