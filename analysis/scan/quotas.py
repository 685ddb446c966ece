"""ResourceQuotas with entries that nothing counts for, so that they limit nothing: of extended resources only
``requests.<name>`` counts."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.scan.finding import Finding, FindingSubject
from analysis.scan.seen import ScannedCluster
from kube.namespace_limits.resource_quota import REQUESTS, is_counted, unit_of


def find(seen: ScannedCluster) -> Iterator[Finding]:
    """Yield each quota with such an entry for which it has no entry that counts."""
    for (namespace, name), quota in sorted(seen.cluster.facts.quotas.items()):
        entries = {entry: f"{REQUESTS}{unit_of(entry)}" for entry in sorted(quota.hard) if not is_counted(entry)}
        if entries:
            right = tuple(dict.fromkeys(entry for entry in entries.values() if entry not in quota.hard))
            values = {"entries": tuple(entries), "right": right}
            yield Finding(kind="quota-counts-nothing", where=FindingSubject("ResourceQuota", namespace, name), values=values)
