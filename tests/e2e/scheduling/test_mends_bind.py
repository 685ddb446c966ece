"""Smallest changes, held against kube-scheduler: each gets its pod bound. Policies judge every change as they would judge the pod."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any

from analysis.admission_preview import Admission, AdmittedPod
from analysis.fixes.edits import changed
from analysis.fixes.smallest import smallest
from kube.node import occupant
from policies.engine import Request
from policies.placement.fleet import Fleet, best, fleet_of
from policies.state.updater import Options, Updater
from tests.e2e.scheduling.nodes_as_objects import NAMESPACE, cleared, cordoned, decided, made, sentinel
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling import random_places
from tests.support.scheduling.every_change import fits_after
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

PODS = count(15, 1000)
OF_A_ROUND = 10
"""Pods beside each other: what is free gets less from one to the next."""
MOST_UNMENDED = 0.01
"""Of those for which some change of one or two steps would do."""
SPEC = {
    "mode": "Enforce",
    "require": {"tolerations": {"forbid": [{"key": "team", "value": "ml"}]}, "gpusPerPod": {"max": 4}},
    "default": {"acceleratorTaints": "Tolerate"},
}


def test_each_change_gets_its_pod_bound(plain: Cluster) -> None:
    """Pods that fit nowhere: what is proposed is not denied by the policies, is accepted by the API server and bound."""
    tally = {"mended": 0, "none": 0, "missed": 0}
    wrong: list[str] = []
    number = 0
    while tally["mended"] < PODS:
        _round(plain, number, tally, wrong)
        number += 1
    assert len(wrong) <= MOST_UNMENDED * PODS, "\n".join(wrong)
    assert tally["missed"] <= MOST_UNMENDED * PODS, tally


def _admission() -> Admission:
    policy = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "p"}, "spec": SPEC}
    return Admission(Updater(catalog(), Options()).apply({("ClusterGPUPolicy", "", "p"): policy}).snapshot)


def _admit(admission: Admission, pod: Mapping[str, Any]) -> AdmittedPod:
    return admission.of(Request(namespace=NAMESPACE, user="somebody", groups=(), pod=dict(pod)))


def _round(cluster: Cluster, number: int, tally: dict[str, int], wrong: list[str]) -> None:
    random, admission = Random(number), _admission()
    objects = [made(cluster, random_places.node(random, f"m{number}-{i}")) for i in range(4)]
    names = [one["metadata"]["name"] for one in objects]
    bound = [sentinel(cluster, name) for name in names if not cordoned(objects, name)]
    for i in range(OF_A_ROUND):
        fleet = fleet_of(objects, catalog=catalog(), tables={}, occupants=filter(None, map(occupant, bound)))
        pod = _pending(cluster, random, f"p{number}-{i}", names, fleet, admission)
        found = smallest(pod, fleet, catalog(), partial(_admit, admission)).fix
        if found is None:
            tally["missed" if any(_allowed(fits_after(pod, fleet, steps), admission) for steps in (1, 2)) else "none"] += 1
            continue
        tally["mended"] += 1
        admitted = _admit(admission, changed(pod, found.edits))
        assert not admitted.violations, admitted.violations
        reply = cluster.api.try_create(admitted.pod, NAMESPACE)
        outcome = cluster.wait_for(partial(decided, cluster, pod["metadata"]["name"]), "a decision") if reply.ok else reply.body
        if reply.ok and outcome["spec"].get("nodeName"):
            bound.append(outcome)
        else:
            wrong.append(f"{pod} with {found.steps}: {reply.message or outcome['status']}")
    cleared(cluster, objects)


def _allowed(pod: Raw | None, admission: Admission) -> bool:
    return pod is not None and not _admit(admission, pod).violations


def _pending(cluster: Cluster, random: Random, name: str, names: list[str], fleet: Fleet, admission: Admission) -> Raw:
    """One that the API server and the policies take, and no node."""
    while True:
        pod = random_places.pod(random, name, names)
        reply = cluster.api.try_create(pod, NAMESPACE, dry_run=True)
        admitted = _admit(admission, pod)
        if reply.ok and not admitted.violations and best(admitted.pod, fleet) != "now":
            return pod
