"""MIG slices and time-sliced GPUs: a pod runs on the share that was asked for, and a pod that must have a GPU to itself on no share.

Nodes are static. kwok plays the kubelets, so that the device plugin hands out what the node offers is taken for granted.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from catalog import Gpu
from tests.e2e.judged import Judged, judged, pool
from tests.e2e.workloads import NVIDIA, TOLERATION, amounts, gpus, node_of, pod, waiting
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import nodes
from tests.testcluster.addons.nodes import FakeNode
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

ASKED = "berth.dev/mig-slice"
SLICES = {"10gb": "nvidia.com/mig-1g.10gb", "20gb": "nvidia.com/mig-1g.20gb", "40gb": "nvidia.com/mig-3g.40gb"}
"""nominal size -> the profile of an A100-80GB with the fewest compute slices"""


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[Judged]:
    sharings = {"exclusive": "exclusive", "time-sliced": "time-sliced", "sliced": "sliced", "any": "any"}
    with judged(cluster, "slices", namespaces={key: {"sharing": value} for key, value in sharings.items()}) as found:
        yield found


@pytest.fixture(autouse=True)
def cleared(world: Judged) -> Iterator[None]:
    yield
    world.clear("Pod")


def asking(size: str, resources: Raw | None = None) -> Raw:
    """Its author asks for a slice of this size in place of the whole GPU."""
    return pod(resources, metadata={"annotations": {ASKED: size}})


def a100() -> Gpu:
    (found,) = catalog().models("A100-80GB")
    return found


def sliced_alike(name: str) -> FakeNode:
    """Every GPU in seven 1g.10gb, strategy single: the slices have a whole GPU's resource name."""
    whole = nodes.whole(name, a100(), 1)
    sliced = {
        "nvidia.com/gpu.product": f"{whole.labels['nvidia.com/gpu.product']}-MIG-1g.10gb",
        "nvidia.com/gpu.memory": "9728",
        "nvidia.com/gpu.count": "7",
        "nvidia.com/gpu.slices.gi": "1",
        "nvidia.com/gpu.slices.ci": "1",
        "nvidia.com/mig.strategy": "single",
    }
    return FakeNode(
        name=name, labels={**whole.labels, **sliced}, taints=whole.taints, resources={NVIDIA: "7"}, model=whole.model, sharing="MIG"
    )


def bound(world: Judged, namespace: str) -> list[str]:
    """The nodes of all pods there that have one."""
    found = (one["spec"].get("nodeName") for one in world.cluster.api.list("v1", "Pod", world[namespace]))
    return sorted(node for node in found if node)


# --- slices ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SLICES)
def test_a_pod_lands_on_the_slice_that_its_author_asks_for(world: Judged, size: str) -> None:
    """Without Berth nobody reads the annotation, and even who tolerates the taint holds a whole GPU."""
    plain = asking(size)
    plain["spec"]["tolerations"] = [TOLERATION]
    assert node_of(world.cluster, world.cluster.api.create(plain, world["plain"])) != "a100-mig"
    stored = world.cluster.api.create(asking(size), world["any"])
    assert amounts(stored) == ({SLICES[size]: "1"}, {SLICES[size]: "1"})
    assert node_of(world.cluster, stored) == "a100-mig"


def test_the_policys_slice_is_for_authors_who_ask_for_none(world: Judged) -> None:
    """Silent: 40 GB. Who asks for 10 gets 10; who asks for two GPUs keeps them, and who names a slice by its resource keeps that."""
    made = (pod(), asking("10gb"), pod(gpus(2)), pod(gpus(name=SLICES["20gb"])))
    stored = [world.cluster.api.create(one, world["sliced"]) for one in made]
    wanted = ({SLICES["40gb"]: "1"}, {SLICES["10gb"]: "1"}, {NVIDIA: "2"}, {SLICES["20gb"]: "1"})
    assert [amounts(one)[1] for one in stored] == list(wanted)
    assert [node_of(world.cluster, one) == "a100-mig" for one in stored] == [True, True, False, True]


def test_a_slice_more_than_there_are_waits(world: Judged) -> None:
    """Three pods, two slices and a whole GPU that is free: the third waits for a slice, and does not take the GPU."""
    node = nodes.mixed_mig("two-slices", a100(), 1, {"3g.40gb": 2})
    with pool(world.cluster, "two-slices", node, nodes.whole("beside-them", a100(), 1)) as selector:
        made = asking("40gb")
        made["spec"]["nodeSelector"] = selector
        for _ in range(3):
            world.cluster.api.create(made, world["any"])
        world.cluster.wait_for(lambda: bound(world, "any") == ["two-slices"] * 2, "two pods to be bound")
        (third,) = (one for one in world.cluster.api.list("v1", "Pod", world["any"]) if "nodeName" not in one["spec"])
        assert f"Insufficient {SLICES['40gb']}" in waiting(world.cluster, third)


@pytest.mark.parametrize(
    ("made", "code", "fact", "fix"),
    [
        (asking("15gb"), "BERTH-151", f'metadata.annotations["{ASKED}"] is "15gb"', "such as 16gb"),
        (asking("half"), "BERTH-151", f'metadata.annotations["{ASKED}"] is "half"', "such as 10gb"),
        (
            pod(gpus(name="nvidia.com/mig-3g.45gb")),
            "BERTH-115",
            "nvidia.com/mig-3g.45gb, a MIG slice that no GPU has",
            "write nvidia.com/mig-3g.47gb",
        ),
    ],
    ids=["no-such-size", "no-size", "no-such-profile"],
)
def test_an_impossible_slice_is_denied_with_what_to_type(world: Judged, made: Raw, code: str, fact: str, fix: str) -> None:
    """Within the first 200 characters."""
    sentence = f"{code}: {world.denied('any', made, code)}"[:200]
    assert fact in sentence
    assert fix in sentence


def test_a_profile_that_no_gpu_has_waits_for_ever_without_berth(world: Judged) -> None:
    """The API server stores any name."""
    made = pod(gpus(name="nvidia.com/mig-3g.45gb"), tolerations=[TOLERATION])
    assert "Insufficient nvidia.com/mig-3g.45gb" in waiting(world.cluster, world.cluster.api.create(made, world["plain"]))


# --- shares ------------------------------------------------------------------------------------------------------------


def test_a_pod_of_its_own_gpu_is_never_on_a_shared_or_sliced_one(world: Judged) -> None:
    """Five pods, two whole GPUs, eight turns of shared ones, seven slices by a whole GPU's name: two run, three wait.

    Without Berth all five run, and the shares are used: nothing in the name nvidia.com/gpu tells them from a GPU.
    """
    whole, shared, sliced = nodes.whole("whole", a100(), 2), nodes.time_sliced("shared", a100(), 2, 4), sliced_alike("sliced")
    with pool(world.cluster, "shares", whole, shared, sliced) as selector:
        made = pod(nodeSelector=selector, tolerations=[TOLERATION])
        for _ in range(5):
            world.cluster.api.create(made, world["plain"])
        world.cluster.wait_for(lambda: len(bound(world, "plain")) == 5, "all pods that nobody judges to be bound")
        assert set(bound(world, "plain")) - {"whole"}
        world.clear("Pod")
        stored = [world.cluster.api.create(made, world["exclusive"]) for _ in range(5)]
        world.cluster.wait_for(lambda: bound(world, "exclusive") == ["whole"] * 2, "two pods to be bound")
        left = [one for one in stored if not _has_node(world, one)]
        assert ["didn't match" in waiting(world.cluster, one) for one in left] == [True] * 3
        assert bound(world, "exclusive") == ["whole"] * 2


def _has_node(world: Judged, stored: Raw) -> bool:
    found = world.cluster.api.get("v1", "Pod", stored["metadata"]["name"], stored["metadata"]["namespace"])
    return found is not None and "nodeName" in found["spec"]


def test_a_pod_for_shared_gpus_is_never_on_a_whole_one(world: Judged) -> None:
    """Four turns for five pods, and two whole GPUs that stay free."""
    whole, shared = nodes.whole("kept-free", a100(), 2), nodes.time_sliced("in-turns", a100(), 1, 4)
    with pool(world.cluster, "turns", whole, shared) as selector:
        stored = [world.cluster.api.create(pod(nodeSelector=selector), world["time-sliced"]) for _ in range(5)]
        world.cluster.wait_for(lambda: bound(world, "time-sliced") == ["in-turns"] * 4, "four pods to be bound")
        (left,) = [one for one in stored if not _has_node(world, one)]
        assert waiting(world.cluster, left)
        assert bound(world, "time-sliced") == ["in-turns"] * 4


@pytest.mark.parametrize(
    ("made", "code", "message"),
    [
        (pod(gpus(name="nvidia.com/mig-1g.10gb")), "BERTH-121", "request nvidia.com/gpu."),
        (pod(gpus(name="nvidia.com/gpu.shared")), "BERTH-121", "nvidia.com/gpu.shared"),
        (pod(nodeSelector={"nvidia.com/gpu.sharing-strategy": "time-slicing"}), "BERTH-121", "nvidia.com/gpu.sharing-strategy"),
        (asking("10gb"), "BERTH-153", "remove the annotation, or request another size"),
    ],
    ids=["slice-by-name", "share-by-name", "share-by-label", "slice-by-annotation"],
)
def test_a_share_is_denied_where_gpus_are_exclusive(world: Judged, made: Raw, code: str, message: str) -> None:
    """By whatever word the author asks for it."""
    assert message in world.denied("exclusive", made, code)[:190]
