"""KAI beside Berth: pods of a namespace with a queue of KAI's are placed by KAI's own scheduler, in their queue, where policies say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e import one_policy
from tests.e2e.judged import Judged, judged
from tests.e2e.workloads import APP, KINDS, NVIDIA, gpus, pod, pod_of, workload
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.testcluster import thirdparty
from tests.testcluster.addons import kai, nodes
from tests.testcluster.controlplane.api import MERGE, Raw, Reply
from tests.testcluster.fixtures import control_plane, needs_sources

QUOTA = 8
OTHER = "team-b"
"""A queue that no policy allows"""
GATE = {"name": "tests.berth.dev/gate"}
FAMILY = "nvidia.com/gpu.family"
PODS = count(2, 8)
POLICIES: dict[str, Raw] = {
    "queued": {"default": {"queue": {"kai": "team-a"}}, "require": {"families": {"in": ["hopper"]}}},
    "required": {"require": {"queue": {"kai": ["team-a"]}}},
}


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    """A cluster with KAI, whose queues may have eight GPUs each, and with Berth, which is called for workloads too."""
    needs_sources(request.config, thirdparty.KAI)
    with control_plane(request.session) as cluster:
        nodes.add(cluster, *nodes.bare_metal(catalog()))
        kai.start(cluster)
        for name in ("team-a", OTHER):
            kai.queue(cluster.api, name, QUOTA)
        file = tmp_path_factory.mktemp("kai") / "policies.yaml"
        file.write_text(yaml.safe_dump_all(one_policy.in_namespaces(name, spec) for name, spec in POLICIES.items()))
        with judged(cluster, "kai", namespaces={name: {"policy": name} for name in POLICIES}, policies=file, by=["--queues"]) as found:
            yield found


@pytest.fixture(autouse=True)
def cleared(world: Judged) -> Iterator[None]:
    yield
    world.clear("Job", "Deployment", "ReplicaSet")


def placed(world: Judged, made: Raw, key: str = "queued") -> Raw:
    """The pod, once it has a node."""
    return bound(world, world.cluster.api.create(made, world[key])["metadata"]["name"], key)


def bound(world: Judged, name: str, key: str = "queued") -> Raw:
    """The pod of this name, once it has a node."""
    world.cluster.wait_for(lambda: _stored(world, name, key)["spec"].get("nodeName"), f"KAI to place the pod {name}")
    return _stored(world, name, key)


def _stored(world: Judged, name: str, key: str = "queued") -> Raw:
    found = world.cluster.api.get("v1", "Pod", name, world[key])
    assert found is not None
    return found


def test_a_silent_pod_is_scheduled_by_kai_in_its_queue(world: Judged) -> None:
    """KAI binds it, its group of pods is in the queue, and its node is of the family that is required."""
    for made in (placed(world, pod()) for _ in range(PODS)):
        assert made["spec"]["schedulerName"] == kai.SCHEDULER
        assert made["metadata"]["labels"][kai.QUEUE] == "team-a"
        node = world.cluster.api.get("v1", "Node", made["spec"]["nodeName"])
        assert node is not None
        assert node["metadata"]["labels"][FAMILY] == "hopper"
        assert kai.queue_of(world.cluster.api, made) == "team-a"


def test_a_plain_pod_stays_with_the_default_scheduler(world: Judged) -> None:
    """Berth is not called for it, whatever its namespace's queue."""
    made = placed(world, pod(resources={}))
    assert made["spec"]["schedulerName"] == "default-scheduler"
    assert kai.QUEUE not in made["metadata"].get("labels", {})


def test_a_gang_that_fits_nowhere_starts_no_pod(world: Judged) -> None:
    """Eight pods of two GPUs each want more than the queue may have: none is placed. A gang of four is placed whole."""
    for name, members in (("large", 8), ("small", 4)):
        made = workload("Job", pod(gpus(2)), name, parallelism=members, completions=members)
        made["metadata"]["annotations"] = {"kai.scheduler/batch-min-member": str(members)}
        world.cluster.api.create(made, world["queued"])
    world.cluster.wait_for(lambda: len(_placed(world, "small")) == 4, "KAI to place the gang of four")
    assert _placed(world, "large") == []


def _placed(world: Judged, name: str) -> list[Raw]:
    pods = world.cluster.api.list("v1", "Pod", world["queued"], labelSelector=f"app={name}")
    return [one for one in pods if one["spec"].get("nodeName")]


def test_pods_of_kais_own_are_left_alone(world: Judged) -> None:
    """A reservation pod of its binder asks for a GPU in a namespace of KAI's, and is stored as it came."""
    made = pod(metadata={"labels": {"app": "kai-resource-reservation", "runai-gpu-group": "g"}}, nodeName="h100")
    stored = world.cluster.api.create(made, "kai-resource-reservation")
    assert "berth.dev/applied" not in stored["metadata"].get("annotations", {})
    assert stored["spec"]["nodeName"] == "h100"
    world.cluster.api.delete({**stored, "apiVersion": "v1", "kind": "Pod"}, grace=0)


def test_a_pod_past_the_queue_is_denied(world: Judged) -> None:
    """One for the default scheduler is told which scheduler and queue to name, and passes with them."""
    sentence = world.denied("required", pod(), "BERTH-144")
    assert "kai-scheduler" in sentence
    assert "team-a" in sentence
    fine = pod(metadata={"labels": {kai.QUEUE: "team-a"}}, schedulerName=kai.SCHEDULER)
    assert world.cluster.api.try_create(fine, world["required"]).ok
    assert NVIDIA in fine["spec"]["containers"][0]["resources"]["limits"]


def in_team_a(name: str) -> Raw:
    """A GPU pod in the queue that is required, which nobody places yet."""
    return pod(metadata={"name": name, "labels": {kai.QUEUE: "team-a", APP: name}}, schedulerName=kai.SCHEDULER, schedulingGates=[GATE])


def of_other(kind: str, name: str, **spec: Any) -> Raw:
    """A workload of pods without GPUs, in the queue that no policy allows."""
    made = workload(kind, pod({}), name, **spec)
    made["metadata"]["labels"] = {kai.QUEUE: OTHER}
    return made


def patched(world: Judged, kind: str, name: str, change: Raw, content: str = MERGE) -> Reply:
    """The reply to a patch of an object of the namespace whose queue is required."""
    value = {"apiVersion": KINDS.get(kind, "v1"), "kind": kind, "metadata": {"name": name}}
    return world.cluster.api.call("PATCH", world.cluster.api.path_of(value, world["required"]), change, content=content)


def assert_in_its_queue(world: Judged, name: str) -> None:
    """The pod has no owner; once it is released from its gate, KAI places it in the queue that is required."""
    assert patched(world, "Pod", name, {"spec": {"schedulingGates": None}}).ok
    stored = bound(world, name, "required")
    assert "ownerReferences" not in stored["metadata"]
    assert kai.queue_of(world.cluster.api, stored) == "team-a"


def denied_adoptions(world: Judged) -> float:
    """How many updates Berth has denied: those of controllers, while nobody else writes."""
    return world.berth.metric("berth_requests_total", phase="validate", decision="denied")


def test_an_owner_by_an_update_changes_no_queue(world: Judged) -> None:
    """A pod that gets an owner whose queue KAI would take is denied, and stays in its own."""
    api = world.cluster.api
    owner = api.create(of_other("ReplicaSet", "owner", replicas=0), world["required"])["metadata"]
    api.create(in_team_a("owned"), world["required"])
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": owner["uid"]}
    reply = patched(world, "Pod", "owned", {"metadata": {"ownerReferences": [reference]}})
    assert (reply.status, "BERTH-144: metadata.ownerReferences names a new owner" in reply.message) == (403, True), reply.message
    assert_in_its_queue(world, "owned")


def test_a_replica_set_of_another_queue_adopts_no_pod(world: Judged) -> None:
    """Its real controller finds the pod by its label and is denied, so that the pod stays in its own queue."""
    world.cluster.api.create(in_team_a("adopted"), world["required"])
    before = denied_adoptions(world)
    world.cluster.api.create(of_other("ReplicaSet", "adopted", replicas=1), world["required"])
    world.cluster.wait_for(lambda: denied_adoptions(world) > before, "the controller of ReplicaSets to adopt the pod")
    assert_in_its_queue(world, "adopted")


def test_a_pod_joins_no_group_of_another_queue(world: Judged) -> None:
    """The group of a pod without GPUs may be in any queue; a pod that names it by an update is denied."""
    guest = pod({}, metadata={"name": "guest", "labels": {kai.QUEUE: OTHER}}, schedulerName=kai.SCHEDULER)
    stored = placed(world, guest, "required")
    assert kai.queue_of(world.cluster.api, stored) == OTHER
    group = stored["metadata"]["annotations"]["pod-group-name"]
    world.cluster.api.create(in_team_a("grouped"), world["required"])
    reply = patched(world, "Pod", "grouped", {"metadata": {"annotations": {"pod-group-name": group}}})
    assert (reply.status, "BERTH-144: metadata.annotations.pod-group-name" in reply.message) == (403, True), reply.message
    assert_in_its_queue(world, "grouped")


def test_a_deployment_of_another_queue_adopts_no_replica_set(world: Judged) -> None:
    """Paused and without GPUs it may be in any queue; its real controller is denied as it adopts a ReplicaSet of GPU pods, whose pods stay
    in theirs."""
    made = workload("ReplicaSet", in_team_a("gpus"), "gpus", replicas=1)
    made["metadata"]["labels"] = {APP: "gpus", kai.QUEUE: "team-a"}
    made["spec"]["template"]["metadata"].pop("name")
    made["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = "x"
    made["spec"]["template"]["spec"].pop("schedulingGates")
    world.cluster.api.create(made, world["required"])
    before = denied_adoptions(world)
    world.cluster.api.create(of_other("Deployment", "gpus", replicas=1, paused=True), world["required"])
    world.cluster.wait_for(lambda: denied_adoptions(world) > before, "the controller of Deployments to adopt the ReplicaSet")
    stored = world.cluster.api.get("apps/v1", "ReplicaSet", "gpus", world["required"])
    assert stored is not None
    assert "ownerReferences" not in stored["metadata"]
    name = pod_of(world.cluster, world["required"], "gpus")["metadata"]["name"]
    assert kai.queue_of(world.cluster.api, bound(world, name, "required")) == "team-a"


def test_a_deployment_moves_neither_with_its_gpus_nor_as_they_go(world: Judged) -> None:
    """Its pods stay in the queue that is required, and so does the one that its controller makes next."""
    made = workload("Deployment", in_team_a("moves"), "moves", replicas=1)
    made["metadata"]["labels"] = {kai.QUEUE: "team-a"}
    made["spec"]["template"]["metadata"].pop("name")
    made["spec"]["template"]["spec"].pop("schedulingGates")
    world.cluster.api.create(made, world["required"])
    bare = {"containers": [{"name": "main", "image": "registry.example/main:1", "resources": {}}]}
    for spec in ({}, {"paused": True, "template": {"spec": bare}}):
        reply = patched(world, "Deployment", "moves", {"metadata": {"labels": {kai.QUEUE: OTHER}}, "spec": spec})
        assert (reply.status, f'BERTH-144: metadata.labels["{kai.QUEUE}"] is "{OTHER}"' in reply.message) == (403, True), reply.message
    first = pod_of(world.cluster, world["required"], "moves")
    world.cluster.api.delete(first, grace=0)

    def next_pod() -> Raw | None:
        found = world.cluster.api.list("v1", "Pod", world["required"], labelSelector=f"{APP}=moves")
        return next((one for one in found if one["metadata"]["uid"] != first["metadata"]["uid"] and one["spec"].get("nodeName")), None)

    assert kai.queue_of(world.cluster.api, world.cluster.wait_for(next_pod, "KAI to place the next pod")) == "team-a"
