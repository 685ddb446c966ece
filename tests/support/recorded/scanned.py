"""A scan of objects, as of a cluster that has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from analysis.admission.patch_applier import apply_patch
from analysis.scan.finding import Finding
from analysis.scan.remedies import Remedies
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
    remedies: Remedies
    report: ScanReport

    def of(self, kind: str) -> list[Finding]:
        """The findings of one kind."""
        return [one for one in self.report.findings if one.kind == kind]


def scanned(objects: Iterable[dict[str, Any]]) -> Scanned:
    """The report under the shipped policies, with the catalog's prices."""
    cluster = of_objects(objects, None, catalog())
    snapshot = shipped(catalog(), OPTIONS, cluster)
    seen, remedies = see(cluster, snapshot, prices(catalog())), Remedies(snapshot, apply_patch)
    return Scanned(seen, remedies, scan(seen, remedies))
