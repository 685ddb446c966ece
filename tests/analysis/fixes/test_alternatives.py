"""Cheaper and sooner devices: what is promised of each holds, by the engine and by a count of our own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

import pytest

from analysis.admission_preview import AdmittedPod, preview_admission
from analysis.fixes.alternatives import MOST_TRIED, Alternatives, AlternativeSearch
from analysis.fixes.edits import changed
from analysis.fixes.placement import SOON
from analysis.world.world import World
from catalog.prices import prices
from kube.scheduling import wants
from policies.placement.fleet import best, blockers
from policies.request import Request
from tests.support.console.worlds import world
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.recorded import eks, gke, on_premises
from tests.support.scheduling import random_places
from tests.support.scheduling.node_pools import node_pool, of_families

Raw = dict[str, Any]
GPU = "nvidia.com/gpu"
ROUNDS = count(12, 150)
CLUSTERS = {"eks": eks.objects, "gke": gke.objects, "on_premises": on_premises.objects}
SPOT = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}


@cache
def _recorded(name: str) -> World:
    return world(CLUSTERS[name]())


def _policy(**spec: Any) -> Raw:
    return {
        "apiVersion": "berth.dev/v1alpha1",
        "kind": "ClusterGPUPolicy",
        "metadata": {"name": "one"},
        "spec": {"mode": "Enforce", **spec},
    }


def _pod(limits: Mapping[str, Any], **spec: Any) -> Raw:
    container = {"name": "c", "image": "i:1", "resources": {"limits": dict(limits), "requests": dict(limits)}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "web"}, "spec": {"containers": [container], **spec}}


def _admitted(at: World, pod: Mapping[str, Any]) -> AdmittedPod:
    return preview_admission(Request(namespace="web", pod=dict(pod)), at.snapshot.facts_for("web"))


def _found(at: World, pod: Raw) -> Alternatives | None:
    search = AlternativeSearch(at.seen.fleet, catalog(), at.prices, at.snapshot.tables)
    return search.alternatives(pod, lambda one: _admitted(at, one))


def _node(name: str, kind: str, gpus: int, *taints: Raw, resource: str = GPU, product: str = "", **labels: str) -> Raw:
    known = {"kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": kind, **labels}
    known |= {"nvidia.com/gpu.product": product} if product else {}
    amounts = {"cpu": "96", "memory": "500Gi", "pods": "110", resource: str(gpus)}
    metadata = {"name": name, "labels": known}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": list(taints)}, "status": status}


def _bound(name: str, node: str, gpus: int) -> Raw:
    pod = _pod({GPU: str(gpus)}, nodeName=node)
    return {**pod, "metadata": {"name": name, "namespace": "web", "uid": name}, "status": {"phase": "Running"}}


def _holds(at: World, objects: list[Raw], pod: Raw, found: Alternatives) -> None:
    """What is said of each, checked anew: admitted, a free node that takes it, and the price of that node."""
    assert found.tried <= MOST_TRIED
    assert [SOON.index(one.placement.soon) for one in found.found] == sorted(SOON.index(one.placement.soon) for one in found.found)
    raw = {value["metadata"]["name"]: value for value in objects if value["kind"] == "Node"}
    held: dict[str, Counter[str]] = {}
    for value in objects:
        if value["kind"] == "Pod" and value["spec"].get("nodeName") and value.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            held.setdefault(value["spec"]["nodeName"], Counter()).update(wants(value).requests)
    for one in found.found:
        admitted = _admitted(at, changed(pod, one.edits))
        assert admitted.violations == ()
        keys = {item.get("key", "") for item in changed(pod, one.edits)["spec"].get("tolerations") or ()}
        before = {item.get("key", "") for item in pod["spec"].get("tolerations") or ()}
        assert not [key for key in keys - before if any(key.startswith(bad.rstrip("*")) for bad in catalog().never_tolerate)]
        asked = wants(admitted.pod).requests
        assert one.count == asked[one.resource]
        place = one.placement
        if place.soon == "now":
            assert best(admitted.pod, at.seen.fleet) == "now"
            taken = [node for node in at.seen.fleet.nodes if not blockers(admitted.pod, node, at.seen.fleet)]
            assert {node.name for node in taken} == set(place.nodes) != set()
            for name in place.nodes:
                node = raw[name]
                selector = admitted.pod["spec"].get("nodeSelector", {})
                assert selector.items() <= node["metadata"]["labels"].items()
                free = int(node["status"]["allocatable"][one.resource]) - held.get(name, Counter())[one.resource]
                assert free >= one.count
            each = [at.prices.of_device(raw[name]["metadata"]["labels"]) for name in place.nodes]
            if place.usd is not None and one.resource == GPU and place.device is not None and place.device.shape == "whole":
                assert place.usd == pytest.approx(max(usd for usd in each if usd is not None) * one.count)
        if place.soon == "made":
            pool = next(pool for pool in at.seen.fleet.pools if pool.name == place.pool)
            assert not blockers(admitted.pod, pool, at.seen.fleet)
            if place.machine:
                usd, devices = prices(catalog()).machines[place.machine]
                assert place.machine_usd == usd
                assert place.usd == pytest.approx(usd / devices * one.count)


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("limits", [{GPU: "1"}, {GPU: "4"}, {"nvidia.com/mig-1g.10gb": "1"}])
def test_what_is_promised_holds_on_recorded_clusters(name: str, limits: dict[str, str]) -> None:
    """Under the shipped policies."""
    at, pod = _recorded(name), _pod(limits)
    found = _found(at, pod)
    if found is not None:
        _holds(at, CLUSTERS[name](), pod, found)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_what_is_promised_holds_on_random_fleets(seed: int) -> None:
    """Nodes with random labels, taints and amounts, a NodePool, pods that hold some, and a policy that forbids some."""
    random = Random(seed)
    names = [f"n{i}" for i in range(6)]
    nodes = [random_places.node(random, name) for name in names]
    nodes.append(_node("typed", random.choice(("g6.xlarge", "p4d.24xlarge")), random.choice((1, 8))))
    objects = [*nodes, node_pool("made", requirements=[of_families("g5", "g6"), SPOT])]
    objects += [_bound(f"b{i}", name, 1) for i, name in enumerate(names) if random.random() < 0.5]
    require = random.choice(({}, {"capacity": ["on-demand"]}, {"models": {"notIn": ["T4"]}}, {"gpuMemory": {"min": 24}}))
    default = random.choice(({"acceleratorTaints": "Tolerate"}, {}))
    at = world(objects, [_policy(**({"require": require} if require else {}), **({"default": default} if default else {}))])
    for _ in range(6):
        pod = random_places.pod(random, "p", names)
        found = _found(at, {**pod, "metadata": {"name": "p", "namespace": "web"}})
        if found is not None:
            _holds(at, objects, {**pod, "metadata": {"name": "p", "namespace": "web"}}, found)


def test_a_free_node_of_another_model_is_sooner() -> None:
    """The one that is asked for is taken; what it costs is told, and that the label is another one."""
    objects = [_node("busy", "p4d.24xlarge", 8), _bound("all", "busy", 8), _node("free", "g6.xlarge", 1)]
    at = world(objects, [])
    pod = _pod({GPU: "1"}, nodeSelector={"node.kubernetes.io/instance-type": "p4d.24xlarge"})
    found = _found(at, pod)
    assert found is not None
    assert found.as_written.soon == "later"
    [one] = found.found
    assert (one.placement.soon, one.placement.nodes, one.placement.device and one.placement.device.model) == ("now", ("free",), "L4")
    assert changed(pod, one.edits)["spec"]["nodeSelector"] == {"node.kubernetes.io/instance-type": "g6.xlarge"}
    assert one.placement.usd == pytest.approx(at.prices.machines["g6.xlarge"][0])
    assert [(caution.kind, caution.before, caution.after) for caution in one.cautions] == [
        ("memory", "40", "24"),
        ("label", "p4d.24xlarge", "g6.xlarge"),
    ]


def test_a_slice_is_named_as_one() -> None:
    """It is less than the whole GPU that the author asks for."""
    slice_ = "nvidia.com/mig-1g.10gb"
    at = world([_node("cut", "p5.48xlarge", 56, resource=slice_, product="NVIDIA-H100-80GB-HBM3")], [])
    found = _found(at, _pod({GPU: "1"}))
    assert found is not None
    [one] = found.found
    assert (one.resource, one.placement.soon) == (slice_, "now")
    assert [(caution.kind, caution.after) for caution in one.cautions] == [("slice", "10")]
    assert one.placement.usd == pytest.approx(at.prices.machines["p5.48xlarge"][0] / 8 / 7, rel=0.2)


def test_what_policies_deny_is_counted_and_left_out() -> None:
    """A model that is forbidden is no alternative, though it is free."""
    group = {"eks.amazonaws.com/nodegroup": "gpu"}
    objects = [_node("busy", "p4d.24xlarge", 8, **group), _bound("all", "busy", 8), _node("free", "g6.xlarge", 1, **group)]
    at = world(objects, [_policy(require={"models": {"notIn": ["L4"]}})])
    found = _found(at, _pod({GPU: "1"}))
    assert found is not None
    assert (found.found, found.denied) == ((), 1)


def test_taints_that_nobody_tolerates_stay() -> None:
    """A node that is not ready is not offered; one that is kept for a team is, and it is said."""
    bad = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    team = {"key": "team", "value": "vision", "effect": "NoSchedule"}
    at = world([_node("sick", "g6.xlarge", 1, bad), _node("theirs", "g5.xlarge", 1, team)], [])
    found = _found(at, _pod({GPU: "1"}))
    assert found is not None
    [one] = found.found
    assert one.placement.nodes == ("theirs",)
    assert [(caution.kind, caution.key, caution.after) for caution in one.cautions] == [("taint", "team", "vision")]


def test_words_that_are_not_about_machines_stay() -> None:
    """A zone, or a label of a team's own, is the author's: what lies outside of it is no alternative."""
    at = world([_node("far", "g6.xlarge", 1, **{"topology.kubernetes.io/zone": "b"})], [])
    found = _found(at, _pod({GPU: "1"}, nodeSelector={"topology.kubernetes.io/zone": "a"}))
    assert found is not None
    assert found.found == ()


def test_spot_is_named_where_it_is_not_asked_for() -> None:
    """The price is that on demand, and spot comes before it."""
    at = world([node_pool("made", requirements=[of_families("g6"), SPOT])], [])
    found = _found(at, _pod({GPU: "1"}, nodeSelector={"karpenter.sh/capacity-type": "on-demand"}))
    assert found is not None
    [one] = [one for one in found.found if one.placement.capacity == "spot"]
    assert {caution.kind for caution in one.cautions} >= {"spot", "label"}
    asked = _found(at, _pod({GPU: "1"}, nodeSelector={"karpenter.sh/capacity-type": "spot", "karpenter.k8s.aws/instance-gpu-name": "l4"}))
    assert asked is not None
    assert asked.found == ()


@pytest.mark.parametrize("limits", [{}, {"cpu": "1"}, {GPU: "1", "nvidia.com/mig-1g.10gb": "1"}, {"google.com/tpu": "4"}])
def test_pods_without_devices_of_one_kind_have_none(limits: dict[str, str]) -> None:
    """Nothing is searched for them."""
    assert _found(world([_node("n", "g6.xlarge", 1)], []), _pod(limits)) is None
