"""The store goes back in time, our definitions go with all that they define, and so does what policies use: what is stored counts, a slip
does not."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count as count_from
from pathlib import Path

import pytest

from policies.policy import API_VERSION, GROUP
from tests.e2e.faults.load import Questions, under_load
from tests.e2e.faults.marks import FREE, LABEL, MOST_GPUS, OWN, PLAIN, RULED, gpu_pod, of_cluster, of_namespace
from tests.e2e.faults.world import World
from tests.support.counts import count
from tests.testcluster.addons.installed import DEPLOY
from tests.testcluster.controlplane import restarting
from tests.testcluster.controlplane.api import MERGE, Raw
from tests.testcluster.controlplane.starting import apply_crds

RESTORES = count(1, 5)
AHEAD = 400
"""revisions that the store is ahead of its copy: more than an API server and its clients write while they start"""
ATTEMPTS = 5
"""to write the very revision: others write too"""
WITHOUT = count(1, 30)
"""seconds under load without definitions"""
DEFINITIONS = [f"{plural}.{GROUP}" for plural in ("clustergpupolicies", "gpupolicies", "gpunodetemplates")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Of the store, and by what marks pods were given then."""

    folder: Path
    marks: Mapping[str, int]


@pytest.fixture(scope="module")
def copy(world: World) -> Copy:
    """As the store is at first."""
    folder = restarting.backup(world.cluster)
    world.settled()
    return Copy(folder=folder, marks=world.marks.newest())


def test_a_store_that_is_restored(world: World, copy: Copy) -> None:
    """From an older copy, so that its revision goes back: what was deleted since acts again, as it was then, and what was made since is
    gone; both are in the log."""
    for _ in range(RESTORES):
        with under_load(world.api, world.replica, world.marks) as load:
            for _ in range(3):
                world.write()
            world.settled(load)
            late = world.marks.newest()
            world.marks.set_back(copy.marks)
            restarting.restore(world.cluster, copy.folder)
            took = world.settled(load)
        world.assert_sound(load)
        _is_logged(world, added=copy.marks[OWN], removed=late[OWN])
        print(f"restored; the replica agreed {took:.2f} s after the API server was back")


def _is_logged(world: World, added: int, removed: int) -> None:
    ids = {f"GPUPolicy/{OWN}/mark-{added}": "added", f"GPUPolicy/{OWN}/mark-{removed}": "removed"}
    events = world.replica.events("policies_loaded")
    last = {one: next(e for e in reversed(events) if any(one in e[how] for how in ("added", "removed"))) for one in ids}
    assert all(one in last[one][how] for one, how in ids.items()), last


def test_a_version_that_is_given_twice(world: World, copy: Copy) -> None:
    """The store is restored while a replica is cut off, and the same policy comes to the same resourceVersion with other contents: its
    new contents act."""
    assert any(_given_twice(world, copy) for _ in range(ATTEMPTS)), "somebody else wrote the revision each time"
    world.settled()


def _given_twice(world: World, copy: Copy) -> bool:
    """Whether it could be had."""
    for number in range(AHEAD):
        _bump(world, number)
    world.write()
    world.until(
        lambda: _mark(world).get("status", {}).get("observedGeneration") == _mark(world)["metadata"]["generation"], lambda: "its status"
    )
    world.settled()
    wanted = _version_of_mark(world)
    with _alone(world):
        world.marks.set_back(copy.marks)
        restarting.restore(world.cluster, copy.folder)
        before = _filled_up_to(world, wanted - 1)
        mark = world.marks.history[RULED]
        mark.append(max(mark) + 1)
        assert world.api.apply(of_cluster(mark[-1])).ok
        given = _version_of_mark(world)
    if (before, given) == (wanted - 1, wanted):
        return True
    world.settled()
    return False


@contextmanager
def _alone(world: World) -> Iterator[None]:
    """The replica hears of nothing within the block."""
    world.proxy.deny()
    world.proxy.cut()
    try:
        yield
    finally:
        world.proxy.deny(on=False)


def _filled_up_to(world: World, revision: int) -> int:
    """Writes of something else until the store has come to it; to which it has come."""
    for number in count_from(AHEAD):
        found = _bump(world, number)
        if found >= revision:
            assert number > AHEAD, "the store was as far as that already"
            return found
    raise AssertionError("without end")


def _bump(world: World, number: int) -> int:
    """The revision of a write of something else."""
    value: Raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bump", "namespace": "default"}, "data": {"n": f"{number}"}}
    reply = world.api.apply(value)
    assert reply.ok, reply.message
    return int(reply.body["metadata"]["resourceVersion"])


def _version_of_mark(world: World) -> int:
    return int(_mark(world)["metadata"]["resourceVersion"])


def _mark(world: World) -> Raw:
    value = of_cluster(0)
    stored = world.api.get(value["apiVersion"], value["kind"], value["metadata"]["name"])
    assert stored is not None
    return stored


def test_definitions_that_are_deleted(world: World) -> None:
    """With them Kubernetes deletes all our objects: the last good ones stay in force, and that is said. Made again, together with the
    objects, they are followed as before."""
    with under_load(world.api, world.replica, world.marks) as load:
        _undefine(world)
        time.sleep(WITHOUT)
    world.assert_sound(load)
    _define(world)
    _apply_objects(world)
    begun = time.perf_counter()
    world.settled(load)
    print(f"followed {time.perf_counter() - begun:.1f} s after the objects were back")
    with under_load(world.api, world.replica, world.marks) as load:
        world.write()
        world.settled(load)
    world.assert_sound(load)


def test_definitions_that_come_back_empty(world: World) -> None:
    """Then what is stored counts, and that is nothing: no policy acts, until there are some again."""
    before = world.marks.newest()
    _undefine(world)
    world.marks.set_back({RULED: PLAIN, OWN: PLAIN})
    _define(world)
    world.settled()
    questions = Questions(world.replica)
    assert questions.ask(RULED, 2 * MOST_GPUS) == (200, PLAIN)
    world.marks.set_back(before)
    _apply_objects(world)
    world.settled()
    assert questions.ask(RULED, 2 * MOST_GPUS) == (200, None)
    questions.close()


def _undefine(world: World) -> None:
    for name in DEFINITIONS:
        world.api.delete({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}})
    world.says(*(f"the API server no longer has the CustomResourceDefinition {name}" for name in DEFINITIONS))


def _define(world: World) -> None:
    apply_crds(world.api, sorted((DEPLOY / "crds").glob("*.yaml")), world.cluster.processes)


def _apply_objects(world: World) -> None:
    for value in world.marks.objects():
        reply = world.api.apply(value)
        assert reply.ok, reply.message


POOL = {"tests.berth.dev/pool": "used"}
TAINT = {"key": "tests.berth.dev/pool", "value": "used", "effect": "NoSchedule"}
GRACE = 7777


@pytest.fixture
def questions(world: World) -> Iterator[Questions]:
    """To the replica."""
    asked = Questions(world.replica)
    yield asked
    asked.close()


def test_a_label_that_is_changed(world: World, questions: Questions) -> None:
    """A namespace moves out of a guardrail, and another into it, with its next pod; all others stay where they are."""
    mark = world.marks.newest()[RULED]
    for changes, wanted in (
        ({RULED: None}, {RULED: PLAIN, FREE: PLAIN}),
        ({FREE: "yes"}, {RULED: PLAIN, FREE: mark}),
        ({RULED: "yes", FREE: "no"}, {RULED: mark, FREE: PLAIN}),
        ({FREE: None}, {RULED: mark, FREE: PLAIN}),
    ):
        for namespace, value in changes.items():
            labels = {"metadata": {"labels": {LABEL: value}}}
            assert world.api.call("PATCH", f"/api/v1/namespaces/{namespace}", labels, content=MERGE).ok
        _decided(world, questions, {**wanted, OWN: world.marks.newest()[OWN]})
        for namespace, seconds in wanted.items():
            stored = world.api.create(gpu_pod(1), namespace)
            assert stored["spec"]["terminationGracePeriodSeconds"] == seconds


def test_a_policy_that_is_deleted(world: World, questions: Questions) -> None:
    """That of the cluster, and that of a namespace: from then on it does not act, and every other does."""
    marks = world.marks.newest()
    for value, without in ((of_cluster(marks[RULED]), {RULED: PLAIN}), (of_namespace(marks[OWN]), {OWN: PLAIN})):
        world.api.delete(value)
        _decided(world, questions, {**marks, **without})
        assert questions.ask(RULED, 2 * MOST_GPUS) == (200, None)
        assert world.api.apply(value).ok
        _decided(world, questions, marks)


def test_a_template_that_is_deleted(world: World) -> None:
    """Its policy acts on without it, and says so in its status; the template made again, it is used again."""
    template: Raw = {"gpus": {"vendors": ["nvidia"]}, "labels": POOL, "taints": [TAINT]}
    values: list[Raw] = [
        {"apiVersion": API_VERSION, "kind": "GPUNodeTemplate", "metadata": {"name": "used"}, "spec": template},
        {
            "apiVersion": API_VERSION,
            "kind": "GPUPolicy",
            "metadata": {"name": "user", "namespace": FREE},
            "spec": {"mode": "Enforce", "default": {"nodeTemplate": "used", "gracePeriod": f"{GRACE}s"}},
        },
        {
            "apiVersion": API_VERSION,
            "kind": "ClusterGPUPolicy",
            "metadata": {"name": "grants"},
            "spec": {"mode": "Enforce", "allow": {"nodeTemplates": ["used"]}},
        },
    ]
    for value in values:
        reply = world.api.apply(value)
        assert reply.ok, reply.message
    _stored(world, [GRACE, True, True])
    world.api.delete(values[0])
    _stored(world, [GRACE, False, False])
    world.until(lambda: "TemplateNotFound" in _reasons(world), lambda: f"a status that says so: {_reasons(world)}")
    assert world.api.apply(values[0]).ok
    _stored(world, [GRACE, True, True])
    world.until(lambda: "TemplateNotFound" not in _reasons(world), lambda: f"a status that is well again: {_reasons(world)}")
    for value in values:
        world.api.delete(value)


def _stored(world: World, wanted: list[object]) -> None:
    """[seconds of grace, whether the template's labels are asked for, whether its taints are tolerated], of the next pod in FREE, soon."""
    world.until(lambda: _next_pod(world) == wanted, lambda: f"{wanted} instead of {_next_pod(world)}")


def _next_pod(world: World) -> list[object]:
    spec = world.api.create(gpu_pod(1), FREE, dry_run=True)["spec"]
    label, value = next(iter(POOL.items()))
    asked = f"'key': '{label}'" in str(spec.get("affinity")) or spec.get("nodeSelector", {}).get(label) == value
    return [spec["terminationGracePeriodSeconds"], asked, any(one.get("key") == TAINT["key"] for one in spec["tolerations"])]


def _reasons(world: World) -> list[str]:
    stored = world.api.get(API_VERSION, "GPUPolicy", "user", FREE)
    assert stored is not None
    return [one["reason"] for one in stored.get("status", {}).get("conditions", ())]


def _decided(world: World, questions: Questions, wanted: Mapping[str, int]) -> None:
    world.until(lambda: world.decided(questions) == wanted, lambda: f"{wanted} instead of {world.decided(questions)}")
