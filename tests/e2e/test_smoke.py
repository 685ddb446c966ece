"""The cluster itself: what every other end-to-end test rests on."""

from __future__ import annotations

from tests.testcluster.addons.berth import PROBE
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import NewNamespace


def test_a_gpu_pod_without_a_toleration_waits_for_ever(cluster: Cluster, new_namespace: NewNamespace) -> None:
    """What Berth is for: kube-scheduler says that no node will have it."""
    namespace = new_namespace()
    cluster.api.create(PROBE, namespace)

    def denied() -> Raw | None:
        status = (cluster.api.get("v1", "Pod", "probe", namespace) or {}).get("status", {})
        return next((one for one in status.get("conditions", ()) if one.get("reason") == "Unschedulable"), None)

    assert "untolerated taint" in cluster.wait_for(denied, "kube-scheduler to say why")["message"]
