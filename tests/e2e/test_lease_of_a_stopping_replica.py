"""Which replica writes statuses during a rollout: one that stays, and never one that stops."""

from __future__ import annotations

import http.client
import signal

from tests.testcluster.addons import berth, installed
from tests.testcluster.addons.berth import Berth
from tests.testcluster.controlplane.cluster import Cluster

OPTIONS = ("--lease", "default/stopping-replica", "--lame-duck", "60")


def holds(replica: Berth) -> bool:
    return replica.metric("berth_lease_held") == 1


def test_a_replica_that_stops_releases_the_lease_before_its_lame_duck_period(cluster: Cluster) -> None:
    """Another replica writes at once, while the one that stops still answers calls: after a rollout to another ``--max-mode`` statuses
    show the mode that acts."""
    installed.install(cluster)
    leaving = berth.serve(cluster, "leaving", cluster.kubeconfig, *OPTIONS)
    try:
        cluster.wait_for(lambda: holds(leaving), "the replica to hold the Lease")
        staying = berth.serve(cluster, "staying", cluster.kubeconfig, *OPTIONS)
        try:
            leaving.process.signal(signal.SIGTERM)
            cluster.wait_for(lambda: holds(staying), "the other replica to hold the Lease")
            assert (b"[-] stopping" in leaving.page("/readyz").body, holds(leaving)) == (True, False)
        except (OSError, http.client.HTTPException) as error:
            raise AssertionError("the Lease was released only with the end of the lame-duck period") from error
        finally:
            cluster.processes.end(staying.process)
    finally:
        cluster.processes.end(leaving.process)
