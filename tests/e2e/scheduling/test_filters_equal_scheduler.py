"""What is judged of random pods and nodes, held against what kube-scheduler does with them. Nobody plays the kubelets: nodes are
objects, and a pod that is bound stays as it is."""

from __future__ import annotations

from functools import partial
from random import Random

from kube.node import occupant
from policies.placement.fleet import best, blockers, fleet_of
from tests.e2e.scheduling.nodes_as_objects import NAMESPACE, cleared, cordoned, decided, made, sentinel
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling import random_places
from tests.testcluster.controlplane.cluster import Cluster

ROUNDS = count(1, 50)
NODES, PODS = 8, 40
"""of one round; in all 40 pods in make test, 2,000 in make prove"""


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
    objects = [made(cluster, random_places.node(random, f"n{number}-{i}")) for i in range(NODES)]
    names = [one["metadata"]["name"] for one in objects]
    bound = [sentinel(cluster, name) for name in names if not cordoned(objects, name)]
    for i in range(PODS):
        value = random_places.pod(random, f"p{number}-{i}", names)
        reply = cluster.api.try_create(value, NAMESPACE)
        if not reply.ok:
            assert reply.status == 422, reply.message  # a limit below its request
            continue
        places = fleet_of(objects, catalog=catalog(), tables={}, occupants=filter(None, map(occupant, bound)))
        expected = best(reply.body, places)
        outcomes[expected] += 1
        outcome = cluster.wait_for(partial(decided, cluster, value["metadata"]["name"]), "a decision")
        if node := outcome["spec"].get("nodeName"):
            bound.append(outcome)
            (place,) = (one for one in places.nodes if one.name == node)
            if expected != "now" or (found := blockers(reply.body, place, places)):
                wrong.append(f"{value} is bound to {place}; expected {expected}, {found if expected == 'now' else ''}")
        elif expected == "now":
            wrong.append(f"{value} is not bound: {outcome['status']}")
    cleared(cluster, objects)
