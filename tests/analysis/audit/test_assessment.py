"""The findings on pods under one snapshot: alike pods once, each by its own workload and price."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from analysis.audit.assessment import MOST_OWNERS, Assessment, workload_of
from analysis.audit.audited_decision import audit_pod
from analysis.audit.outcomes import audit_results
from analysis.audit.stored_pod import Controller, StoredPod, stored, widest
from catalog.prices import prices
from kube.labels import INSTANCE_TYPE
from policies.facts.cluster_facts import ClusterFacts
from policies.policy import Default, Policy, PolicySet
from policies.verdict import MODES
from tests.support.generators.random_worlds import catalog
from tests.support.generators.strategies import Case, cases, examples
from tests.support.snapshots import build

Raw = dict[str, Any]
WIDE = widest(catalog())
GRACE = Policy(name="grace", mode="Audit", default=Default(grace=600))
NODES = {"big": {INSTANCE_TYPE: "p4d.24xlarge"}, "odd": {}}
SNAPSHOT = build(PolicySet(policies=(GRACE,)), catalog(), cluster=ClusterFacts(nodes=NODES))


def pod(name: str, resource: str = "nvidia.com/gpu", amount: int = 2, node: str = "", **metadata: Any) -> StoredPod:
    amounts = {resource: str(amount)}
    spec: Raw = {"containers": [{"name": "c", "resources": {"limits": amounts, "requests": amounts}}], "terminationGracePeriodSeconds": 30}
    metadata = {"name": name, "namespace": "team-a", "uid": name, **metadata}
    return stored({"metadata": metadata, "spec": {**spec, **({"nodeName": node} if node else {})}}, WIDE)


def owned_by(kind: str, uid: str) -> Raw:
    return {"ownerReferences": [{"apiVersion": "x.example/v1", "kind": kind, "name": uid, "uid": uid, "controller": True}]}


def assessment(**owners: Controller) -> Assessment:
    return Assessment(SNAPSHOT, prices(catalog(), {"p4d.24xlarge": 16.0}), owners)


def test_each_pod_has_the_findings_of_its_like() -> None:
    """As if it were judged alone; its name is its own."""
    one = assessment()
    for name in ("a", "b"):
        found, judged = one.of(pod(name)), audit_pod(pod(name), SNAPSHOT.facts_for("team-a"))
        assert found is not None
        assert judged is not None
        assert (found.stored.name, found.outcomes, found.matched) == (name, tuple(audit_results(judged)), ("ClusterGPUPolicy/grace",))


def test_a_pod_without_accelerators_has_none() -> None:
    """However often it is looked at."""
    one = assessment()
    assert [one.of(pod("a", "example.com/disk")) for _ in range(2)] == [None, None]


@pytest.mark.parametrize(
    ("given", "usd"),
    [
        (pod("a", node="big"), 4.0),
        (pod("a", "nvidia.com/mig-1g.5gb", 1, node="big"), 2.0 / 7),
        (pod("a", node="odd"), None),
        (pod("a"), None),
    ],
)
def test_a_pod_costs_its_part_of_the_node(given: StoredPod, usd: float | None) -> None:
    """A machine of eight devices at 16 USD; a slice is a seventh of one; without a node or its price nothing is said."""
    found = assessment().of(given)
    assert found is not None
    assert found.usd == (None if usd is None else pytest.approx(usd, rel=0.13))


def test_the_workload_is_the_owner_of_owners() -> None:
    """As far as owners are known; of a pod without one, its namespace; a circle ends."""
    job = Controller("batch/v1", "CronJob", "nightly", "c")
    assert workload_of(pod("a"), {}).kind == "Namespace"
    assert workload_of(pod("a", **owned_by("Job", "j")), {})[1:] == ("Job", "team-a", "j", "j")
    assert workload_of(pod("a", **owned_by("Job", "j")), {"j": job})[1:] == ("CronJob", "team-a", "nightly", "c")
    versions = {("batch", "CronJob"): "batch/v2", ("other.example", "CronJob"): "other.example/v1"}
    assert workload_of(pod("a", **owned_by("Job", "j")), {"j": job}, versions).api_version == "batch/v2"
    circle = {str(n): Controller("v1", "X", str((n + 1) % 3), str((n + 1) % 3)) for n in range(3)}
    assert workload_of(pod("a", **owned_by("X", "0")), circle).name == str(MOST_OWNERS % 3)


@examples(10, 300)
@given(cases(MODES))
def test_pods_on_like_nodes_have_the_findings_of_each_alone(case: Case) -> None:
    """Whatever was judged before: pods that differ in their node alone, and of which a denial names the node."""
    world = case.world.snapshot
    together = Assessment(world, prices(catalog()), {})
    raw = {**case.request.pod, "metadata": {**case.request.pod.get("metadata", {}), "name": "p", "namespace": case.request.namespace}}
    for _ in range(2):
        for node in ("", "unknown", *world.cluster.nodes):
            one = replace(stored(raw, WIDE), node=node)
            assert together.of(one) == Assessment(world, prices(catalog()), {}).of(one), node
