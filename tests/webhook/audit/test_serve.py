"""The port of `berth audit --serve`: what it answers, and what docs/audit.md says of its metrics."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from catalog.prices import prices
from cluster.client.access import Access
from cluster.client.api_client import Client
from policies.state.updater import AUTO, Options
from sources.sources import ClusterSource
from telemetry.exposition import Scraped, exposition
from tests.support.generators.random_worlds import catalog
from webhook.audit.auditor import Auditor
from webhook.audit.serve import checks, collect_audit

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "audit.md"
NOBODY = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


def asked(folder: Path, question: Any) -> Any:
    """Of an auditor whose API server does not answer."""
    (folder / "kubeconfig").write_text(NOBODY)
    source = ClusterSource(kubeconfig=str(folder / "kubeconfig"), context=None, watch=60, lease=("berth-system", "berth-audit"))

    async def run() -> Any:
        client = await Client.connect(Access(source.kubeconfig, None))
        try:
            return question(Auditor(catalog(), Options(platforms=(AUTO,), mig_strategy=AUTO), prices(catalog()), source, client))
        finally:
            await client.close()

    return asyncio.run(run())


def test_it_is_not_ready_before_all_pods_are_judged(tmp_path: Path) -> None:
    """Nor does it say that reports are written by it."""
    found = asked(tmp_path, lambda auditor: [(check.name, check.ready, check.text) for check in checks(auditor)])
    assert [(name, ready) for name, ready, _ in found] == [("cluster", False), ("pods", False), ("reports", True)]
    assert found[2][2] == "none: no report CRD is installed; another process writes, or none yet"


def test_the_documentation_lists_every_metric(tmp_path: Path) -> None:
    """Name, type and labels, and no other."""

    def exposed(auditor: Auditor) -> str:
        registry = CollectorRegistry()
        registry.register(Scraped(lambda: collect_audit(auditor)))
        return exposition(registry, "application/openmetrics-text")[0].decode()

    families = list(text_string_to_metric_families(asked(tmp_path, exposed)))  # type: ignore[no-untyped-call]
    rows = re.findall(r"^\| `(berth_\w+)` \| (\w+) \| (.*?) ?\| .+ \|$", DOCUMENTATION.read_text(), re.MULTILINE)
    listed = {(name, kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert listed == {
        (
            family.name + ("_total" if family.type == "counter" else ""),
            family.type,
            frozenset(label for sample in family.samples for label in sample.labels),
        )
        for family in families
    }
