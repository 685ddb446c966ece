"""What reflectors of pods and owners tell arrives once, as the newest state; what is of no use is not remembered."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given

from analysis.audit.stored_pod import Controller, StoredPod
from analysis.audit.templates import STAND_IN
from cluster.reports import queues
from cluster.reports.queues import Bases, OwnerQueue, PodQueue, WorkloadQueue
from tests.support.cluster.collecting_store import at_once
from tests.support.generators.strategies import examples, randoms

NAMES = ("a", "b", "c", "d")


def pod(name: str, version: int) -> StoredPod:
    return StoredPod(namespace="n", name=name, uid=str(version), owner=None, node="", finished=False, created="", shared=b"")


def of(name: str, stored: StoredPod | None) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n"}, "pod": stored, "uid": "", "owner": None}


@examples(30, 1000)
@given(randoms())
def test_whoever_takes_changes_knows_what_is_there(random: Random) -> None:
    """After any lists, changes and ends, whenever they are taken: the pods with devices, and no other."""
    filled = asyncio.Event()
    queue, there, known = PodQueue(filled), dict[str, StoredPod](), dict[tuple[str, str], StoredPod]()
    for version in range(random.randint(1, 20)):
        name = random.choice(NAMES)
        match random.randrange(4):
            case 0:
                there = {one: pod(one, version) for one in NAMES if random.random() < 0.5}
                at_once(queue.replace("Pod", [of(one, there.get(one)) for one in NAMES if one in there or random.random() < 0.5]))
            case 1:
                there[name] = pod(name, version)
                queue.put("Pod", of(name, there[name]))
            case 2:  # it asks for nothing
                there.pop(name, None)
                queue.put("Pod", of(name, None))
            case _:
                there.pop(name, None)
                queue.remove("Pod", of(name, None))
        if random.random() < 0.5:
            for key, one in queue.take().items():
                known.pop(key, None)
                if one is not None:
                    known[key] = one
            assert known == {("n", name): one for name, one in there.items()}


def test_pods_without_devices_wake_nobody() -> None:
    """A cluster of plain pods costs nothing: neither an entry nor a turn."""
    filled = asyncio.Event()
    queue = PodQueue(filled)
    queue.put("Pod", of("a", None))
    queue.remove("Pod", of("a", None))
    assert (filled.is_set(), queue.take()) == (False, {})
    at_once(queue.replace("Pod", [of("a", None)]))
    assert (filled.is_set(), queue.take()) == (True, {})


def test_owners_come_and_go() -> None:
    """Those that are owned, by uid and kind; one that loses its owner is one that goes."""
    above = Controller("apps/v1", "Deployment", "d", "d")
    queue = OwnerQueue(asyncio.Event())
    at_once(queue.replace("ReplicaSet", [{"uid": "1", "owner": above}, {"uid": "2", "owner": None}]))
    at_once(queue.replace("Job", [{"uid": "3", "owner": above}]))
    assert queue.take() == {"1": above, "3": above}
    at_once(queue.replace("ReplicaSet", []))
    queue.put("Job", {"uid": "3", "owner": None})
    queue.put("Job", {"uid": "4", "owner": None})
    queue.remove("Job", {"uid": "5", "owner": above})
    assert queue.take() == {"1": None, "3": None}


def test_templates_come_and_go_with_their_workloads() -> None:
    """Each with the owner that stands above it; a list without a workload ends both, and what is the same is not told again."""
    above = Controller("apps/v1", "Deployment", "a", "1")
    filled = asyncio.Event()
    queue = WorkloadQueue(filled)
    one = {"metadata": {"name": "a", "namespace": "n"}, "uid": "1", "owner": None, "templates": (pod("Deployment/a/0", 1),), "above": above}
    none = {**one, "metadata": {"name": "b", "namespace": "n"}, "uid": "2", "templates": ()}
    at_once(queue.replace("Deployment", [one, none]))
    assert (queue.take(), queue.take_pods()) == ({STAND_IN + "1": above}, {("n", "Deployment/a/0"): pod("Deployment/a/0", 1)})
    filled.clear()
    queue.put("Deployment", one)
    queue.put("Deployment", none)
    assert (filled.is_set(), queue.take(), queue.take_pods()) == (False, {}, {})
    queue.put("Deployment", {**one, "templates": ()})
    assert (queue.take(), queue.take_pods()) == ({STAND_IN + "1": None}, {("n", "Deployment/a/0"): None})
    queue.put("Deployment", one)
    at_once(queue.replace("Deployment", [none]))
    assert (queue.take(), queue.take_pods()) == ({STAND_IN + "1": None}, {("n", "Deployment/a/0"): None})


def test_pods_that_own_others_are_owners() -> None:
    """Whether they have devices themselves or not."""
    filled, above = asyncio.Event(), Controller("apps/v1", "StatefulSet", "s", "s")
    owners = OwnerQueue(filled)
    queue = PodQueue(filled, owners)
    leader = {**of("leader", None), "uid": "1", "owner": above}
    queue.put("Pod", leader)
    assert (owners.take(), queue.take()) == ({"1": above}, {})
    at_once(queue.replace("Pod", [of("a", pod("a", 1))]))
    assert (owners.take(), len(queue.take())) == ({"1": None}, 1)
    queue.put("Pod", leader)
    queue.remove("Pod", leader)
    assert owners.take() == {"1": None}


def test_the_version_in_which_workloads_are_followed() -> None:
    """Is that of the newest object."""
    queue = WorkloadQueue(asyncio.Event())
    one = {"metadata": {"name": "a", "namespace": "n"}, "uid": "1", "owner": None, "templates": ()}
    at_once(queue.replace("JobSet.jobset.x-k8s.io", [{**one, "above": Controller("jobset.x-k8s.io/v1alpha2", "JobSet", "a", "1")}]))
    queue.put("JobSet.jobset.x-k8s.io", {**one, "above": Controller("jobset.x-k8s.io/v1", "JobSet", "a", "1")})
    assert queue.versions == {("jobset.x-k8s.io", "JobSet"): "jobset.x-k8s.io/v1"}


KINDS = (("trainer.kubeflow.org", "ClusterTrainingRuntime"), ("trainer.kubeflow.org", "TrainingRuntime"))
EVERYWHERE, SOMEWHERE = (f"{kind}.{group}" for group, kind in KINDS)


def one(name: str, value: Any, namespace: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, "base": orjson.dumps(value)}


def test_an_object_is_found_by_kind_namespace_and_name() -> None:
    """Of several kinds the first that has it; what is in another namespace is not."""
    found = Bases(asyncio.Event())
    at_once(found.replace(EVERYWHERE, [one("torch", 1)]))
    at_once(found.replace(SOMEWHERE, [one("torch", 2, "a"), one("mine", 3, "a")]))
    wanted = [(KINDS, "a", "torch"), (KINDS[1:], "a", "torch"), (KINDS, "b", "torch"), (KINDS, "a", "mine"), (KINDS, "b", "mine")]
    documents = [found.find(*asked) for asked in wanted]
    assert [document and document.value for document in documents] == [1, 2, 1, 3, None]
    at_once(found.replace(EVERYWHERE, []))
    found.remove(SOMEWHERE, one("mine", 3, "a"))
    assert [found.find(*asked) is None for asked in wanted] == [False, False, True, True, True]


def test_only_a_change_is_told() -> None:
    """Each costs a list of all workloads that rest on such objects."""
    changed = asyncio.Event()
    found = Bases(changed)
    for value, told in ((1, True), (1, False), (2, True)):
        changed.clear()
        found.put(EVERYWHERE, one("torch", value))
        assert changed.is_set() == told
    changed.clear()
    at_once(found.replace(EVERYWHERE, [one("torch", 2)]))
    found.put(EVERYWHERE, {**one("large", 0), "base": None})
    assert not changed.is_set()


def test_all_of_them_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is past it is not found; what goes makes room."""
    monkeypatch.setattr(queues, "MOST_BYTES", 10)
    found = Bases(asyncio.Event())
    at_once(found.replace(EVERYWHERE, [one("a", "123"), one("b", "123"), one("c", "123")]))
    assert [found.find(KINDS, "n", name) is not None for name in "abc"] == [True, True, False]
    found.put(EVERYWHERE, one("a", ""))
    found.put(EVERYWHERE, one("c", "123"))
    assert [found.find(KINDS, "n", name) is not None for name in "abc"] == [True, True, False]
    found.remove(EVERYWHERE, one("b", "123"))
    found.put(EVERYWHERE, one("c", "123"))
    assert found.find(KINDS, "n", "c") is not None
