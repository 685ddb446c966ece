"""What the API server counts of its webhooks' calls.

Sources: k8s.io/apiserver, pkg/admission/metrics; the entry's name is the label ``name``.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.testcluster.addons.metrics import samples
from tests.testcluster.controlplane.cluster import Cluster

CALLS = "apiserver_admission_webhook_request_total"
DENIED = "apiserver_admission_webhook_rejection_count"
"""pods denied by the entry, for whatever reason"""
EXCLUDED = "apiserver_admission_match_condition_exclusions_total"
"""objects for which its conditions did not hold"""
FAIL_OPEN = "apiserver_admission_webhook_fail_open_count"
"""calls that failed and let the object pass"""
_ALL = (CALLS, DENIED, EXCLUDED, FAIL_OPEN)
Counted = Mapping[tuple[str, str, str], float]
"""(metric, entry, operation) -> number since the API server started; fail_open knows no operation: "" """


def counted(cluster: Cluster) -> Counted:
    """Of every entry, whatever configuration it is in. Raises OSError."""
    found: dict[tuple[str, str, str], float] = {}
    for sample in samples(cluster.api.text("/metrics"), *_ALL):
        key = (sample.name, sample.labels["name"], sample.labels.get("operation", ""))
        found[key] = found.get(key, 0.0) + sample.value
    return found


def since(before: Counted, cluster: Cluster) -> Counted:
    """What has risen, by how much."""
    after = counted(cluster)
    return {key: after[key] - before.get(key, 0.0) for key in after if after[key] != before.get(key, 0.0)}
