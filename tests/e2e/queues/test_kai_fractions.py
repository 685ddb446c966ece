"""KAI's parts of GPUs beside Berth: admitted by both, scheduled by KAI in their queue, on a GPU that policies allow, and shared."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as numbers

import pytest
import yaml

from tests.e2e import one_policy
from tests.e2e.judged import Judged, judged
from tests.e2e.queues import kai_admission
from tests.e2e.queues.kai_admission import Admission
from tests.e2e.workloads import APPLIED, TOLERATION, pod
from tests.support.counts import only_in_prove
from tests.support.generators.random_worlds import catalog
from tests.testcluster import thirdparty
from tests.testcluster.addons import kai, nodes
from tests.testcluster.addons.berth import SCOPE
from tests.testcluster.controlplane.api import ApiError, Raw
from tests.testcluster.fixtures import control_plane, needs_sources

QUOTA = 4
FAMILY = "nvidia.com/gpu.family"
QUEUED: Raw = {"default": {"queue": {"kai": "team-a"}}, "require": {"families": {"in": ["hopper"]}}}
POLICIES: dict[str, Raw] = {
    "queued": QUEUED,
    "parts": {**QUEUED, "require": {"sharing": ["MIG", "TimeSliced"], "families": {"in": ["hopper"]}}},
    "whole": {**QUEUED, "require": {"sharing": ["Exclusive"]}},
    "required": {"require": {"queue": {"kai": ["team-a"]}}},
}
_number = numbers()


@pytest.fixture(scope="module")
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Judged, Admission]]:
    """A cluster with KAI and its admission program, and with Berth, which judges KAI's own namespaces unless its registration leaves them
    out."""
    needs_sources(request.config, thirdparty.KAI)
    with control_plane(request.session) as cluster:
        nodes.add(cluster, *nodes.bare_metal(catalog()))
        kai.start(cluster)
        kai.queue(cluster.api, "team-a", QUOTA)
        admission = kai_admission.start(cluster)
        file = tmp_path_factory.mktemp("kai") / "policies.yaml"
        file.write_text(yaml.safe_dump_all(one_policy.in_namespaces(name, spec) for name, spec in POLICIES.items()))
        by = ("--kubeconfig", str(cluster.kubeconfig))
        with judged(cluster, "fractions", namespaces={name: {"policy": name} for name in POLICIES}, policies=file, by=by) as found:
            namespace = cluster.api.get("v1", "Namespace", found["required"])
            assert namespace is not None
            labels = {SCOPE: namespace["metadata"]["labels"][SCOPE], "policy": "required"}
            cluster.api.patch(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kai.RESERVATION}}, {"metadata": {"labels": labels}}
            )
            yield found, admission


@pytest.fixture(
    params=[kai_admission.MUTATING, pytest.param(f"zzz-{kai_admission.MUTATING}", marks=only_in_prove)], ids=["KAI's first", "KAI's last"]
)
def world(request: pytest.FixtureRequest, started: tuple[Judged, Admission]) -> Iterator[Judged]:
    """With KAI's webhooks called before Berth's, as by their name, or after them, which `make test` has of another webhook in
    tests/e2e/webhooks/test_second_webhook.py. No pod is left afterwards."""
    judged, admission = started
    with kai_admission.registered(judged.cluster, admission, request.param):
        yield judged
        judged.clear("Pod")
        judged.cluster.wait_for(lambda: not judged.cluster.api.list("v1", "Pod", kai.RESERVATION), "KAI to give its reservations back")


def part(scheduler: str = kai.SCHEDULER, **annotations: str) -> Raw:
    """A pod that asks KAI for a part of a GPU, half of one by default, and names no queue. It has a name: KAI names the maps for its
    environment by that."""
    said = annotations or {"gpu-fraction": "0.5"}
    return pod({}, metadata={"name": f"part-{next(_number)}", "annotations": said}, schedulerName=scheduler)


def placed(world: Judged, *made: Raw, key: str = "queued") -> list[Raw]:
    """The pods, once each has a node; the programs of reservation pods are played meanwhile."""
    names = [world.cluster.api.create(one, world[key])["metadata"]["name"] for one in made]

    def there() -> list[Raw]:
        kai.reserve(world.cluster.api)
        found = [world.cluster.api.get("v1", "Pod", name, world[key]) for name in names]
        done = [one for one in found if one is not None and one["spec"].get("nodeName")]
        return done if len(done) == len(names) else []

    return world.cluster.wait_for(there, f"KAI to place {names}")


def test_two_halves_share_one_gpu_that_is_allowed(world: Judged) -> None:
    """Both are in the default queue, on a node of the family that is required, with its toleration; one GPU is reserved for both."""
    pods = placed(world, part(), part())
    for made in pods:
        assert made["metadata"]["labels"][kai.QUEUE] == "team-a"
        assert TOLERATION in made["spec"]["tolerations"]
        assert made["spec"]["runtimeClassName"] == kai_admission.RUNTIME_CLASS
        assert made["spec"]["nodeName"] in {"h100", "h200"}
        node = world.cluster.api.get("v1", "Node", made["spec"]["nodeName"])
        assert node is not None
        assert node["metadata"]["labels"][FAMILY] == "hopper"
        assert kai.queue_of(world.cluster.api, made) == "team-a"
    assert len({made["metadata"]["labels"][kai.GROUP] for made in pods}) == 1
    world.cluster.wait_for(lambda: len(kai.reserve(world.cluster.api)) == 1, "one reservation")


def test_reservations_are_left_alone(world: Judged) -> None:
    """The pods by which KAI holds GPUs name a node and no queue, under a policy that requires one: their namespace is not judged."""
    world.cluster.api.create(part(), world["queued"])
    (reserved,) = world.cluster.wait_for(lambda: kai.reserve(world.cluster.api), "KAI to reserve a GPU")
    assert APPLIED not in reserved["metadata"]["annotations"]
    assert reserved["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "affinity" not in reserved["spec"]


def test_by_memory_and_of_several_gpus(world: Judged) -> None:
    """A part by memory, and a part of each of two GPUs: both are on nodes that are allowed."""
    pods = placed(world, part(**{"gpu-memory": "2000"}), part(**{"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}))
    assert {made["spec"]["nodeName"] for made in pods} <= {"h100", "h200"}


def test_where_policies_allow_parts_alone(world: Judged) -> None:
    """KAI gives them of whole GPUs: no node with shared ones is asked for."""
    (made,) = placed(world, part(), key="parts")
    assert made["spec"]["nodeName"] in {"h100", "h200"}


def test_ways_past_a_policy_are_denied(world: Judged) -> None:
    """A part where whole GPUs alone are allowed; a machine that is not; no scheduler of the queue that is required."""
    world.denied("whole", part(), "BERTH-117")
    world.denied("queued", {**part(), "spec": {**part()["spec"], "nodeSelector": {FAMILY: "turing"}}}, "BERTH-121")
    world.denied("required", part("default-scheduler"), "BERTH-144")


def test_a_part_that_is_asked_for_later_is_judged_as_a_new_pods(world: Judged) -> None:
    """A pod without a GPU, held back by a gate, passes unjudged; the annotation that it is given then is denied."""
    gated = pod({}, metadata={"name": f"part-{next(_number)}"}, schedulerName=kai.SCHEDULER, schedulingGates=[{"name": "example.com/mine"}])
    made = world.cluster.api.create(gated, world["whole"])
    with pytest.raises(ApiError, match="BERTH-117"):
        world.cluster.api.patch({"apiVersion": "v1", "kind": "Pod", **made}, {"metadata": {"annotations": {"gpu-fraction": "0.5"}}})
    world.cluster.api.patch({"apiVersion": "v1", "kind": "Pod", **made}, {"metadata": {"annotations": {"note": "x"}}})


def test_a_part_for_no_scheduler_that_gives_parts_is_told(world: Judged) -> None:
    """KAI's webhook is not called again for a scheduler that Berth would name: the pod stays where it is, and its author is told."""
    reply = world.cluster.api.try_create(part("default-scheduler"), world["queued"])
    assert reply.ok, reply.message
    assert reply.body["spec"]["schedulerName"] == "default-scheduler"
    assert any(warning.startswith("BERTH-256: ") and kai.SCHEDULER in warning for warning in reply.warnings)
