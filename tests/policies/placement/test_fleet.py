"""All places of a cluster, and what becomes of a pod there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from kube.node import Occupant
from kube.scheduling import Blocker, wants
from policies.placement.fleet import OUTLOOKS, best, blockers, can_ever, fleet_of, outlook
from tests.support.generators.random_worlds import catalog
from tests.support.generators.strategies import randoms
from tests.support.scheduling import random_places
from tests.support.scheduling.node_pools import node_pool, of_families, tables

GPU = "nvidia.com/gpu"


def _node(name: str, count: int = 8, labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "labels": labels or {}}, "status": {"allocatable": {GPU: count, "pods": 10}}}


def _pod(count: int, **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"resources": {"limits": {GPU: count}}}], **spec}}


def _best(pod: dict[str, Any], *objects: dict[str, Any], **more: Any) -> str:
    return best(pod, fleet_of(objects, catalog=catalog(), tables=tables(), **more))


def test_the_best_place_decides() -> None:
    """Free, full, too small."""
    full = [Occupant("a", {GPU: 8})]
    assert _best(_pod(8), _node("a"), occupants=()) == "now"
    assert _best(_pod(8), _node("a"), occupants=full) == "later"
    assert _best(_pod(9), _node("a"), occupants=full) == "never"
    assert _best(_pod(8), _node("a"), _node("b"), occupants=full) == "now"
    assert _best(_pod(16), _node("a"), node_pool("p", requirements=[of_families("p4d")])) == "never"
    assert _best(_pod(8), _node("a", 4), node_pool("p", requirements=[of_families("p4d")])) == "now"


def test_unknown_is_never_impossible() -> None:
    """A cloud's own autoscaler, machines that the catalog lacks, another scheduler, nodes that could not be read."""
    assert _best(_pod(16), _node("a", labels={"cloud.google.com/gke-nodepool": "p"})) == "unknown"
    assert _best(_pod(32), _node("a"), node_pool("p")) == "unknown"
    assert _best(_pod(1), node_pool("p", group="example.com")) == "unknown"
    assert _best(_pod(16, schedulerName="volcano"), _node("a")) == "unknown"
    assert _best(_pod(16), open_ended=True) == "unknown"
    group = {"eks.amazonaws.com/nodegroup": "g"}
    assert _best(_pod(16), _node("a", labels=group)) == "unknown"
    assert _best(_pod(16), _node("a", labels=group), node_pool("p", requirements=[of_families("p4d")])) == "never"
    assert can_ever(_pod(1), fleet_of([], catalog=catalog(), tables={}, open_ended=True))
    assert not can_ever(_pod(1), fleet_of([], catalog=catalog(), tables={}))


def test_startup_taints_and_device_classes_are_the_clusters() -> None:
    """A taint that a NodePool has at the start alone passes on every node; a class may offer a resource by name."""
    taint = {"key": "example.com/agent", "effect": "NoSchedule"}
    node = {**_node("a"), "spec": {"taints": [taint]}}
    assert _best(_pod(1), node, node_pool("p", startup=[taint], replicas=1)) == "later"
    device_class = {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    asks = {"spec": {"containers": [{"resources": {"limits": {"example.com/gpu": 1}}}]}}
    assert _best(asks, _node("a")) == "never"
    assert _best(asks, _node("a"), device_class) == "now"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], "now"),
        ([Blocker("capacity", passing=True)], "later"),
        ([Blocker("machines", certain=False), Blocker("limits", passing=True)], "unknown"),
        ([Blocker("taint"), Blocker("machines", certain=False)], "never"),
    ],
)
def test_the_worst_reason_decides_of_one_place(found: list[Blocker], expected: str) -> None:
    """All of them must end."""
    assert outlook(found) == expected


@given(randoms())
def test_groups_hide_nothing(random: Any) -> None:
    """The best outlook is that of all nodes one by one."""
    names = [f"n{i}" for i in range(12)]
    kinds = [random_places.node(random, "x") for _ in range(3)]
    objects = []
    for name in names:
        like = random.choice(kinds)
        metadata = {"name": name, "labels": {**like["metadata"]["labels"], "kubernetes.io/hostname": name}}
        objects.append({**like, "metadata": metadata})
    places = fleet_of(objects, catalog=catalog(), tables={}, occupants=[Occupant(random.choice(names), {GPU: 4}) for _ in range(4)])
    pod = random_places.pod(random, "p", names)
    assert best(pod, places) == min((outlook(blockers(pod, node, places)) for node in places.nodes), key=OUTLOOKS.index)


def test_a_pool_of_an_unknown_class_never_takes_a_pod() -> None:
    """It may: nothing else is in the way. A label of feature discovery is, as no machine has it before it runs."""
    fleet = fleet_of([node_pool("p", group="example.com")], catalog=catalog(), tables=tables())
    (pool,) = fleet.pools
    unknown = Blocker("node-class", "example.com", certain=False)
    assert blockers(_pod(1), pool, fleet) == (unknown,)
    label, same = blockers(_pod(1, nodeSelector={"nvidia.com/gpu.product": "Tesla-T5"}), pool, fleet)
    assert (label.kind, label.key, label.certain, same) == ("label", "nvidia.com/gpu.product", False, unknown)
    assert blockers(_pod(1, nodeSelector={"example.com/size": "big"}), pool, fleet) == (unknown,)


def test_a_pod_with_claims_is_never_certain_of_a_place() -> None:
    """Whether devices are free for it is what drivers publish; what a node lacks is certain all the same."""
    claims: dict[str, Any] = {"resourceClaims": [{"name": "gpu"}]}
    assert _best(_pod(1, **claims), _node("a"), occupants=()) == "unknown"
    assert _best(_pod(9, **claims), _node("a"), occupants=()) == "never"


def _karpenters(name: str, **labels: str) -> dict[str, Any]:
    own = {"karpenter.sh/nodepool": "p", "node.kubernetes.io/instance-type": "p4d.24xlarge", **labels}
    return {"kind": "Node", "metadata": {"name": name, "labels": own}, "status": {"allocatable": {"pods": 10}}}


def test_a_node_without_its_devices_is_waited_for() -> None:
    """Its label says how many it should have; a pod that asks for more never fits there."""
    node = _node("a", 0, {"node.kubernetes.io/instance-type": "p4d.24xlarge"})
    places = fleet_of([node], catalog=catalog(), tables=tables())
    (blocker,) = blockers(_pod(8), places.nodes[0], places)
    assert (blocker.kind, blocker.operator, blocker.found, blocker.values) == (
        "missing",
        "node.kubernetes.io/instance-type",
        "p4d.24xlarge",
        ("8",),
    )
    assert best(_pod(8), places) == "later"
    assert best(_pod(9), places) == "never"
    assert _best(_pod(8), node, published={"a": {"gpu.nvidia.com": 8}}) == "never"


def test_karpenter_makes_no_node_beside_one_that_is_not_initialized() -> None:
    """It counts what the machine has; once the node is initialized, what it offers, and makes another one."""
    pool = node_pool("p", requirements=[of_families("p4d")])
    assert _best(_pod(8), _karpenters("a"), pool) == "later"
    assert _best(_pod(8), _karpenters("a", **{"karpenter.sh/initialized": "true"}), pool) == "now"
    assert _best(_pod(8, nodeSelector={"kubernetes.io/hostname": "b"}), _karpenters("a"), pool) == "never"


REGISTERED = '[{"id":"GPU-1","count":10,"devmem":81559,"health":true},{"id":"GPU-2","count":10,"devmem":81559}]'
OLDER = "GPU-1,10,81559,100,NVIDIA-A100,0,true:GPU-2,10,81559,100,NVIDIA-A100,0,false,1,hami-core:"
VOLCANO = "GPU-1,10,81559,NVIDIA-A100,true:GPU-2,10,81559,NVIDIA-A100,false:"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("hami.io/node-nvidia-register", REGISTERED),
        ("hami.io/node-nvidia-register", OLDER),
        ("4pd.io/node-nvidia-register", OLDER),
        ("volcano.sh/node-vgpu-register", VOLCANO),
        ("hami.io/node-register-Ascend910B3", REGISTERED),
        ("hami.io/node-amd-register", REGISTERED),
    ],
)
def test_a_container_gets_parts_of_as_many_devices_as_a_node_has(key: str, text: str) -> None:
    """The devices that vGPU makers register; two containers may have parts of the same ones."""
    node = _node("a", 20)
    node["metadata"]["annotations"] = {key: text, "hami.io/node-handshake": "Requesting"}
    places = fleet_of([node], catalog=catalog(), tables=tables())
    assert [(device.id, device.shares, device.healthy) for device in places.nodes[0].registered] == [
        ("GPU-1", 10, True),
        ("GPU-2", 10, False),
    ]
    assert best(_pod(2), places) == "now"
    assert best({"spec": {"containers": _pod(2)["spec"]["containers"] * 3}}, places) == "now"
    (blocker,) = blockers(_pod(3), places.nodes[0], places)
    assert (blocker.kind, blocker.need, blocker.have, blocker.found) == ("resource", 3, 2, "20")


@pytest.mark.parametrize("text", ["[", "[" * 100_000, "[1, null, {}]", "{}", "a,b,c", ",,,,:", ":::", "GPU-1,many,much,x,true:"])
def test_a_register_that_can_not_be_read_registers_nothing(text: str) -> None:
    """Or a device without numbers; nothing is raised."""
    node = _node("a")
    node["metadata"]["annotations"] = {"hami.io/node-nvidia-register": text}
    (read,) = fleet_of([node], catalog=catalog(), tables=tables()).nodes
    assert [device.shares for device in read.registered] == ([0] if text.startswith("GPU") else [])


@pytest.mark.parametrize(
    "name", ["nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/gpumem-percentage", "amd.com/gpumem", "hygon.com/dcumem"]
)
def test_what_an_extender_counts_is_never_missing(name: str) -> None:
    """A node need not list it; one that does is held to it."""
    pod = {"spec": {"containers": [{"resources": {"limits": {GPU: 1, name: 8000}}}]}}
    places = fleet_of([_node("a")], catalog=catalog(), tables=tables(), occupants=())
    assert best(pod, places) == "now"
    assert places.unchecked(wants(pod)) == {"vgpuAmounts"}
    listed = _node("a")
    listed["status"]["allocatable"][name] = 4000
    assert _best(pod, listed) == "never"
