"""What is judged of random pods and nodes, held against what kube-scheduler does with them. Nobody plays the kubelets: nodes are
objects, and a pod that is bound stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random

import pytest

from policies.scheduling.fleet import best, blockers, fleet_of
from policies.scheduling.nodes import occupant
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling import random_places
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

ROUNDS = count(2, 50)
NODES, PODS = 8, 40
"""of one round; in all 80 pods in make test, 2,000 in make prove"""
NAMESPACE = "default"


@pytest.fixture(scope="module")
def plain(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A scheduler, and no controller that taints or removes nodes without a kubelet."""
    options = Options(kubelets=False, controllers="namespace-controller")
    with control_plane(request.session, options) as started:
        yield started


def test_whether_a_pod_is_bound_is_known_before(plain: Cluster) -> None:
    """A pod with a place is bound to one that nothing keeps it off; a pod without one is not bound, whatever the reason."""
    wrong: list[str] = []
    outcomes = {"now": 0, "later": 0, "never": 0}
    for number in range(ROUNDS):
        _round(plain, number, outcomes, wrong)
    assert not wrong, "\n".join(wrong)
    assert min(outcomes.values()) > 0, outcomes


def _round(cluster: Cluster, number: int, outcomes: dict[str, int], wrong: list[str]) -> None:
    random = Random(number)
    objects = [_made(cluster, random_places.node(random, f"n{number}-{i}")) for i in range(NODES)]
    names = [one["metadata"]["name"] for one in objects]
    bound = [_sentinel(cluster, name) for name in names if not _cordoned(objects, name)]
    for i in range(PODS):
        value = random_places.pod(random, f"p{number}-{i}", names)
        reply = cluster.api.try_create(value, NAMESPACE)
        if not reply.ok:
            assert reply.status == 422, reply.message  # a limit below its request
            continue
        places = fleet_of(objects, catalog=catalog(), tables={}, occupants=filter(None, map(occupant, bound)))
        expected = best(reply.body, places)
        outcomes[expected] += 1
        decided = cluster.wait_for(partial(_decided, cluster, value["metadata"]["name"]), "a decision")
        if node := decided["spec"].get("nodeName"):
            bound.append(decided)
            (place,) = (one for one in places.nodes if one.name == node)
            if expected != "now" or (found := blockers(reply.body, place, places)):
                wrong.append(f"{value} is bound to {place}; expected {expected}, {found if expected == 'now' else ''}")
        elif expected == "now":
            wrong.append(f"{value} is not bound: {decided['status']}")
    cluster.api.delete_all("v1", "Pod", NAMESPACE)
    cluster.wait_for(lambda: not cluster.api.list("v1", "Pod", NAMESPACE), "pods to go")
    for one in objects:
        cluster.api.delete(one)


def _decided(cluster: Cluster, name: str) -> Raw | None:
    """The pod once it is bound, or the scheduler has said why it is not."""
    value = cluster.api.get("v1", "Pod", name, NAMESPACE)
    assert value is not None
    conditions = value.get("status", {}).get("conditions", ())
    waits = any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)
    return value if value["spec"].get("nodeName") or waits else None


def _made(cluster: Cluster, value: Raw) -> Raw:
    """A node as stored, without the taint that admission adds to each new one."""
    cluster.api.create(value)
    cluster.api.patch(value, {"status": value["status"]}, subresource="status")
    taints = value["spec"]["taints"]
    return {**cluster.api.patch(value, {"spec": {"taints": taints or None}}), "kind": "Node"}


def _cordoned(objects: list[Raw], name: str) -> bool:
    return any(one["spec"].get("unschedulable") for one in objects if one["metadata"]["name"] == name)


def _sentinel(cluster: Cluster, node: str) -> Raw:
    """A pod that is bound once the scheduler has seen the node as it is."""
    tolerated = [{"key": taint["key"], "operator": "Exists"} for taint in random_places.TAINTS]
    spec = {
        "containers": [{"name": "c", "image": "i:1"}],
        "nodeSelector": {"kubernetes.io/hostname": node},
        "tolerations": tolerated,
    }
    value = cluster.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"seen-{node}"}, "spec": spec}, NAMESPACE)
    return cluster.wait_for(lambda: _bound(cluster, value["metadata"]["name"]), "the scheduler to see the node")


def _bound(cluster: Cluster, name: str) -> Raw | None:
    value = _decided(cluster, name)
    return value if value is not None and value["spec"].get("nodeName") else None
