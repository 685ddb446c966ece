"""KAI beside Berth: pods of a namespace with a queue of KAI's are placed by KAI's own scheduler, in their queue, where policies say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tests.e2e import one_policy
from tests.e2e.judged import Judged, judged
from tests.e2e.workloads import NVIDIA, gpus, pod, workload
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.testcluster import thirdparty
from tests.testcluster.addons import kai, nodes
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.fixtures import control_plane, needs_sources

QUOTA = 8
FAMILY = "nvidia.com/gpu.family"
PODS = count(4, 8)
POLICIES: dict[str, Raw] = {
    "queued": {"default": {"queue": {"kai": "team-a"}}, "require": {"families": {"in": ["hopper"]}}},
    "required": {"require": {"queue": {"kai": ["team-a"]}}},
}


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    """A cluster with KAI, whose queue team-a may have eight GPUs, and with Berth."""
    needs_sources(request.config, thirdparty.KAI)
    with control_plane(request.session) as cluster:
        nodes.add(cluster, *nodes.bare_metal(catalog()))
        kai.start(cluster)
        kai.queue(cluster.api, "team-a", QUOTA)
        file = tmp_path_factory.mktemp("kai") / "policies.yaml"
        file.write_text(yaml.safe_dump_all(one_policy.in_namespaces(name, spec) for name, spec in POLICIES.items()))
        with judged(cluster, "kai", namespaces={name: {"policy": name} for name in POLICIES}, policies=file) as found:
            yield found


@pytest.fixture(autouse=True)
def cleared(world: Judged) -> Iterator[None]:
    yield
    world.clear("Job", "Pod")


def placed(world: Judged, made: Raw) -> Raw:
    """The pod, once it has a node."""
    name = world.cluster.api.create(made, world["queued"])["metadata"]["name"]
    world.cluster.wait_for(lambda: _stored(world, name)["spec"].get("nodeName"), f"KAI to place the pod {name}")
    return _stored(world, name)


def _stored(world: Judged, name: str) -> Raw:
    found = world.cluster.api.get("v1", "Pod", name, world["queued"])
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


def test_a_pod_past_the_queue_is_refused(world: Judged) -> None:
    """One for the default scheduler is told which scheduler and queue to name, and passes with them."""
    sentence = world.refused("required", pod(), "BERTH-144")
    assert "kai-scheduler" in sentence
    assert "team-a" in sentence
    fine = pod(metadata={"labels": {kai.QUEUE: "team-a"}}, schedulerName=kai.SCHEDULER)
    assert world.cluster.api.try_create(fine, world["required"]).ok
    assert NVIDIA in fine["spec"]["containers"][0]["resources"]["limits"]
