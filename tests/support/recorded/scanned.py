"""A scan of objects, as of a cluster that has them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from analysis.admission_preview import Admission
from analysis.scan.finding import Finding
from analysis.scan.report import ScanReport, scan
from analysis.scan.seen import ScannedCluster, see
from catalog.prices import prices
from cli.inspect.scan import shipped
from policies.state.updater import AUTO, Options
from sources.scanned_cluster import of_objects
from tests.support.generators.random_worlds import catalog

OPTIONS = Options(platforms=(AUTO,), mig_strategy=AUTO)


class Scanned(NamedTuple):
    seen: ScannedCluster
    admission: Admission
    report: ScanReport

    def of(self, kind: str) -> list[Finding]:
        """The findings of one kind."""
        return [one for one in self.report.findings if one.kind == kind]


def scanned(objects: Iterable[dict[str, Any]], **changes: Any) -> Scanned:
    """The report under the shipped policies, with the catalog's prices. ``changes``: what else of the cluster was read, or was not."""
    cluster = replace(of_objects(objects, None, catalog()), **changes)
    snapshot = shipped(catalog(), OPTIONS, cluster)
    seen, admission = see(cluster, snapshot, prices(catalog())), Admission(snapshot)
    return Scanned(seen, admission, scan(seen, admission))
