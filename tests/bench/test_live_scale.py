"""A replica of a large cluster: how large it grows while it is called and while policies change. Its CPU: bench.questions.sizing.

``make test`` has nodes that only live change nothing, a change of one policy that costs a small part of all
(``tests/policies/state/test_updater.py``), and memory that stays under load (``tests/fuzz/test_wire.py``).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.harness.following import FollowingReplica, fill, started
from bench.inputs import bodies
from tests.support import machine
from tests.support.cluster.policy_writes import LABEL, follow, writes
from tests.support.cluster.replicas import Caller, asking
from tests.support.counts import only_in_prove
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.addons.installed import install
from tests.testcluster.controlplane.cluster import Options
from tests.testcluster.fixtures import control_plane

pytestmark = only_in_prove
SIZE = 1000
"""policies, namespaces and nodes"""
REVIEWS, CHANGES, UPDATES = 2000, 200, 500
MOST_MB = 150.0
"""the issue's bar, for a thousand policies, namespaces and nodes"""
MOST_BY_CHANGES = 12.0
"""MB: with 200 changes a thousand statuses are written too"""


@pytest.fixture(scope="module")
def following(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FollowingReplica]:
    """A replica of a cluster of this size, ready."""
    with control_plane(request.session, Options(kubelets=False, controllers="namespace-controller")) as cluster:
        kubeconfig = install(cluster)
        fill(cluster.api, tmp_path_factory.mktemp("live") / "size", policies=SIZE, number_of_nodes=SIZE)
        yield started(cluster, kubeconfig)


def test_a_replica_of_a_large_cluster_stays_small(following: FollowingReplica, tmp_path: Path) -> None:
    """When it is ready, after thousands of reviews in a thousand namespaces, and after each of hundreds of changes is decided by."""
    memory = [machine.resident(following.pid)]
    _review(following, tmp_path)
    memory.append(machine.resident(following.pid))
    _change(following)
    memory.append(machine.resident(following.pid))
    grown = ", ".join(f"{mb:.0f}" for mb in memory)
    print(f"{SIZE:,} policies: ready after {following.ready:.1f} s; MB then, after {REVIEWS} reviews, {CHANGES} changes: {grown}")
    assert max(memory) <= MOST_MB
    assert memory[2] - memory[1] <= MOST_BY_CHANGES
    known = json.loads(following.replica.page("/policies").body)
    assert len(known["policies"]) == SIZE
    assert known["rejected"] == {}


def test_nodes_that_only_tell_that_they_live_change_nothing(following: FollowingReplica) -> None:
    """Their updates are heard, and the policies in force are those of before."""
    loaded = len(following.replica.events("policies_loaded"))
    heard = following.replica.metric("berth_watch_events_total", kind="Node")
    nodes = following.cluster.api.list("v1", "Node")
    for number in range(UPDATES):
        status = {"status": {"nodeInfo": {"bootID": f"{number}"}}}
        following.cluster.api.patch({"apiVersion": "v1", "kind": "Node", **nodes[number % len(nodes)]}, status, subresource="status")
    following.cluster.wait_for(
        lambda: following.replica.metric("berth_watch_events_total", kind="Node") >= heard + UPDATES, "every update to be heard"
    )
    assert len(following.replica.events("policies_loaded")) == loaded


def _review(following: FollowingReplica, folder: Path) -> None:
    lines = bodies.written("spread", folder).read_bytes().splitlines()
    caller = Caller(following.replica, "default")
    for number, line in zip(range(REVIEWS), itertools.cycle(lines), strict=False):
        assert caller.ask(bodies.with_number(line, number)).status == 200
    caller.close()


def _change(following: FollowingReplica) -> None:
    namespace = create_namespace(following.cluster, "followed", {LABEL: "followed"})
    with asking([following.replica], namespace) as threads:
        following.cluster.wait_for(lambda: any(answer.status == 200 for answer in threads[0].answers), "the namespace to be known")
        before = threads[0].answers[-1].grace
        for write in itertools.islice(writes(namespace, before), CHANGES):
            follow(following.cluster.api, write, threads, before)
            before = write.grace
