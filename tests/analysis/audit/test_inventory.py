"""Pods that are followed have the findings of pods that are judged anew, whatever changed in between, and nothing is judged in vain."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given

from analysis.audit.assessment import Assessment
from analysis.audit.inventory import Inventory
from analysis.audit.stored_pod import Controller, StoredPod, stored, widest
from analysis.audit.workload_report import OPEN_REPORTS
from catalog.prices import prices
from policies.facts.cluster_facts import ClusterFacts
from policies.policy import Default, Policy, PolicySet
from policies.state.objects import Key
from policies.state.snapshot import Snapshot
from policies.state.updater import Updater
from tests.support.generators import random_changes
from tests.support.generators.random_changes import Changing
from tests.support.generators.random_cluster import NAMESPACES, NODES
from tests.support.generators.random_worlds import catalog
from tests.support.generators.strategies import examples, randoms
from tests.support.snapshots import build

WIDE, COST = widest(catalog()), prices(catalog())
OWNERS = ("rs", "job", "cron", "set")


def random_pod(random: Random, changing: Changing, name: str) -> StoredPod:
    request = changing.pods(1)[0]
    pod = {
        **request.pod,
        "metadata": {**request.pod.get("metadata", {}), "name": name, "namespace": random.choice(NAMESPACES), "uid": name},
    }
    found = stored(pod, WIDE)
    owner = random.choice(OWNERS)
    controller = Controller("apps/v1", "ReplicaSet", owner, owner) if random.random() < 0.6 else None
    node = random.choice(list(NODES)) if random.random() < 0.5 else ""
    return replace(found, owner=controller, node=node, finished=False)


def anew(pods: dict[str, StoredPod], owners: dict[str, Controller], snapshot: Snapshot, versions: dict[tuple[str, str], str]) -> Inventory:
    """All of it in one step."""
    found = Inventory(COST)
    found.versions_changed(versions)
    found.owners_changed(owners.items())
    for pod in pods.values():
        found.pod_changed((pod.namespace, pod.name), pod)
    found.snapshot_changed(snapshot, (), every=True)
    found.evaluate_due(len(pods))
    return found


@examples(8, 400)
@given(randoms())
def test_following_finds_what_judging_anew_does(random: Random) -> None:
    """After every batch of pods, owners, policies and facts: findings, workloads, prices and totals."""
    changing = Changing(random, random_changes.options(random))
    updater, followed = Updater(catalog(), changing.options), Inventory(COST)
    pods: dict[str, StoredPod] = {}
    owners: dict[str, Controller] = {}
    versions: dict[tuple[str, str], str] = {}
    for step in range(8):
        changes = changing.batch()
        update = updater.apply(changes, all_nodes=True)
        if update.changed or not step:
            followed.snapshot_changed(update.snapshot, changes, every=update.policies_changed or not update.decisions_hold)
        for name in random.sample(["a", "b", "c", "d"], 2):
            pod = random_pod(random, changing, name) if random.random() < 0.8 else None
            if (before := pods.pop(name, None)) is not None and (pod is None or pod.namespace != before.namespace):
                followed.pod_changed((before.namespace, name), None)
            if pod is not None:
                pods[name] = pod
                followed.pod_changed((pod.namespace, name), pod)
        owner = random.choice(OWNERS)
        above = Controller("batch/v1", "CronJob", "above", random.choice(OWNERS)) if random.random() < 0.6 else None
        owners.pop(owner, None)
        if above is not None and above.uid != owner:
            owners[owner] = above
        followed.owners_changed([(owner, owners.get(owner))])
        if random.random() < 0.3:
            versions["batch", "CronJob"] = random.choice(("batch/v1", "batch/v2"))
        followed.versions_changed(versions)
        while followed.evaluate_due(1):
            pass
        wanted = anew(pods, owners, update.snapshot, versions)
        assert followed.ledger.pods == wanted.ledger.pods, f"step {step}"
        assert followed.ledger.totals() == wanted.ledger.totals()
        for workload in wanted.ledger.workloads():
            assert followed.ledger.report(workload, OPEN_REPORTS) == wanted.ledger.report(workload, OPEN_REPORTS)


def one_pod(name: str, namespace: str, node: str = "") -> StoredPod:
    spec = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}], **({"nodeName": node} if node else {})}
    return stored({"metadata": {"name": name, "namespace": namespace, "uid": name}, "spec": spec}, WIDE)


def test_only_what_may_be_otherwise_is_judged_again() -> None:
    cases: dict[Key, int] = {("Namespace", "", "team-b"): 2, ("Node", "", "n1"): 2}
    cases |= {("NodePool", "", "x"): 0, ("ResourceClaim", "team-a", "x"): 1}
    snapshot = build(
        PolicySet(policies=(Policy(name="grace", mode="Audit", default=Default(grace=600)),)), catalog(), cluster=ClusterFacts()
    )
    inventory = Inventory(COST)
    for pod in (one_pod("a", "team-a", "n1"), one_pod("b", "team-b", "n2"), one_pod("c", "team-b")):
        inventory.pod_changed((pod.namespace, pod.name), pod)
    inventory.snapshot_changed(snapshot, (), every=False)
    assert (inventory.pods, inventory.due, inventory.evaluate_due(2), inventory.evaluate_due(2)) == (3, 3, 1, 0)
    for changed, due in (
        (("Namespace", "", "team-b"), 2),
        (("Node", "", "n1"), 2),
        (("NodePool", "", "x"), 0),
        (("ResourceClaim", "team-a", "x"), 1),
    ):
        inventory.snapshot_changed(snapshot, [changed], every=False)
        assert inventory.due == due, changed
        inventory.evaluate_due(9)
    inventory.pod_changed(("team-a", "a"), one_pod("a", "team-a", "n1"))
    inventory.owners_changed([("rs", None), ("job", Controller("batch/v1", "CronJob", "x", "x"))])
    assert inventory.due == 0
    inventory.snapshot_changed(snapshot, (), every=True)
    assert inventory.due == 3
    inventory.pod_changed(("team-a", "a"), None)
    assert (inventory.due, inventory.evaluate_due(9), len(inventory.ledger.pods)) == (2, 0, 2)


def test_a_pod_whose_judging_raises_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its verdict stays as it is; what was raised is returned once, and it is judged again when it is due again."""
    followed, judged = Inventory(COST), Assessment.of
    spec = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    pods = [stored({"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": spec}, WIDE) for name in ("a", "b", "c")]
    for pod in pods:
        followed.pod_changed((pod.namespace, pod.name), pod)
    followed.snapshot_changed(build(PolicySet(), catalog()), (), every=True)

    def broken(self: Assessment, pod: StoredPod) -> Any:
        if pod.name == "b":
            raise MemoryError
        return judged(self, pod)

    monkeypatch.setattr(Assessment, "of", broken)
    assert followed.evaluate_due(9) == 0
    assert sorted(followed.ledger.pods) == [("ns", "a"), ("ns", "c")]
    failed = followed.take_failed()
    assert list(failed) == [("ns", "b")]
    assert not followed.take_failed()
    monkeypatch.undo()
    followed.due_again(failed)
    assert followed.evaluate_due(9) == 0
    assert sorted(followed.ledger.pods) == [("ns", "a"), ("ns", "b"), ("ns", "c")]
