"""Many GPU pods at once, from many writers, against one replica: the end-to-end bench's burst (bench.harness.creations), in small.

How fast is for the bench to say; here is only what must hold on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.harness import creations
from bench.inputs import bodies
from tests.support.counts import PROVE, count
from tests.testcluster.addons.berth import LIBRARY, SCOPE, Berth, registered
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import NewNamespace

NAME = "burst"
PODS = count(100, creations.BURST_PODS)


@pytest.fixture(scope="module")
def replica(cluster: Cluster) -> Iterator[Berth]:
    """One, with the shipped policies."""
    with registered(cluster, NAME, [LIBRARY], "--platforms", "karpenter-aws") as berth:
        yield berth


@pytest.mark.parametrize("load", ["mixed", *(["job"] if PROVE else [])])
def test_a_burst_is_stored_whole(load: str, cluster: Cluster, replica: Berth, new_namespace: NewNamespace, tmp_path: Path) -> None:
    """Of GPU pods from 64 writers at once none fails, as one that waits too long would, and none gets past Berth: alike ones and unlike."""
    burst = creations.burst(cluster, replica, bodies.written(f"{load}.bare", tmp_path), new_namespace({SCOPE: NAME}), count=PODS)
    assert (burst.created.calls, burst.created.failed, burst.created.message) == (PODS, 0, "")
    assert (burst.stored, burst.admitted, burst.fail_open) == (PODS, PODS, 0)
    assert burst.berth[float("inf")] >= 2 * PODS


def test_a_burst_past_a_dead_replica_is_seen(cluster: Cluster, new_namespace: NewNamespace, tmp_path: Path) -> None:
    """What the test above counts as failed are the pods that Berth was not there for."""
    pods = bodies.written("job.bare", tmp_path)
    with registered(cluster, "burst-dead", [LIBRARY], "--platforms", "karpenter-aws") as berth:
        berth.kill()
        created = creations.create(cluster.api, pods, new_namespace({SCOPE: "burst-dead"}), writers=4, calls=8)
    assert (created.calls, created.failed) == (8, 8)
    assert "failed calling webhook" in created.message
