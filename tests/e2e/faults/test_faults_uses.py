"""What is in use is changed or deleted: a namespace's label, a policy, a node template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from policies.policy import API_VERSION
from tests.e2e.faults.load import Questions
from tests.e2e.faults.marks import FREE, LABEL, MOST_GPUS, OWN, PLAIN, RULED, gpu_pod, of_cluster, of_namespace
from tests.e2e.faults.world import World
from tests.testcluster.controlplane.api import MERGE, Raw

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
