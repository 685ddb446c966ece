"""Pods that Berth says nothing can run, on a real API server with a real kube-scheduler: none of them is bound."""

from __future__ import annotations

from functools import partial
from random import Random

from policies.engine import evaluate
from policies.facts.cluster_facts import ClusterFacts
from policies.request import Request
from policies.state.updater import Options, Updater
from tests.e2e.scheduling.nodes_as_objects import NAMESPACE, cleared, cordoned, decided, made, sentinel
from tests.support.cases.golden import policies_of
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling import random_places
from tests.testcluster.controlplane.cluster import Cluster

ROUNDS = count(1, 25)
NODES, PODS = 4, 40
"""of one round"""


def test_who_is_warned_is_not_bound(plain: Cluster) -> None:
    """Of random pods on random nodes; and some are warned of."""
    warned: list[str] = []
    bound: list[str] = []
    for number in range(ROUNDS):
        _round(plain, number, warned, bound)
    assert set(warned) & set(bound) == set()
    assert len(warned) >= ROUNDS
    assert len(bound) >= ROUNDS


def _round(cluster: Cluster, number: int, warned: list[str], bound: list[str]) -> None:
    random = Random(f"place {number}")
    objects = [made(cluster, _with_devices(random_places.node(random, f"m{number}-{i}"))) for i in range(NODES)]
    names = [one["metadata"]["name"] for one in objects]
    for name in names:
        if not cordoned(objects, name):
            sentinel(cluster, name)
    updater = Updater(catalog(), Options(platforms=("gfd",)))
    facts = updater.replace_all(policies_of([], catalog()), ClusterFacts.from_objects(objects), all_nodes=True).snapshot.facts_for(
        NAMESPACE
    )
    for i in range(PODS):
        reply = cluster.api.try_create(random_places.pod(random, f"q{number}-{i}", names), NAMESPACE)
        if not reply.ok:
            assert reply.status == 422, reply.message  # a limit below its request
            continue
        name = reply.body["metadata"]["name"]
        verdict = evaluate(Request(namespace=NAMESPACE, pod=reply.body, phase="validate"), facts)
        if any(remark.code == "BERTH-223" for remark in verdict.remarks):
            warned.append(name)
        if cluster.wait_for(partial(decided, cluster, name), "a decision")["spec"].get("nodeName"):
            bound.append(name)
    cleared(cluster, objects)


def _with_devices(node: random_places.Raw) -> random_places.Raw:
    """One whose device plugin has started: a node with labels of GPUs and none of them makes every place uncertain."""
    amounts = node["status"]["capacity"]
    if amounts[random_places.GPU] == "0":
        amounts[random_places.GPU] = node["status"]["allocatable"][random_places.GPU] = "2"
    return node
