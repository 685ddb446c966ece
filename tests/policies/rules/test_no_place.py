"""Pods that nothing can run: never said of one that some place may run, and only where every place is known."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given

from kube.templates import with_defaults
from policies.engine import evaluate
from policies.facts.cluster_facts import ClusterFacts
from policies.placement.fleet import best, fleet_of
from policies.request import Request
from policies.state.snapshot import Snapshot
from policies.state.updater import Options, Updater
from policies.verdict import Verdict
from tests.support.cases.golden import catalog_with, policies_of
from tests.support.generators.strategies import examples, randoms
from tests.support.scheduling import random_places

Raw = dict[str, Any]
CATALOG = catalog_with()
CODE = "BERTH-223"
DEVICE_CLASS = {"kind": "DeviceClass", "metadata": {"name": "g"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}}
TAINT = {"key": "team", "value": "ml", "effect": "NoSchedule"}


def snapshot(
    objects: list[Raw], *, all_nodes: bool = True, platforms: tuple[str, ...] = ("karpenter-aws", "gfd"), **options: Any
) -> Snapshot:
    updater = Updater(CATALOG, Options(platforms=platforms, **options))
    return updater.replace_all(policies_of([], CATALOG), ClusterFacts.from_objects(objects), all_nodes=all_nodes).snapshot


def judged(pod: Raw, seen: Snapshot, phase: Any = "validate", **request: Any) -> Verdict:
    return evaluate(Request(namespace="ml", pod=with_defaults(pod), phase=phase, **request), seen.facts_for("ml"))


def said(verdict: Verdict) -> list[str]:
    return [str(remark) for remark in verdict.remarks if remark.code == CODE]


def node(gpus: int = 4, *taints: Raw, **more: Any) -> Raw:
    metadata = {"name": more.pop("name", "n1"), "labels": more.pop("labels", {})}
    return {
        "kind": "Node",
        "metadata": metadata,
        "spec": {"taints": list(taints), **more},
        "status": {"capacity": {"nvidia.com/gpu": str(gpus)}},
    }


def pool(
    name: str = "gpu", families: tuple[str, ...] = ("g6",), taints: tuple[Raw, ...] = (), group: str = "karpenter.k8s.aws", **spec: Any
) -> Raw:
    made = {
        "nodeClassRef": {"group": group, "kind": "EC2NodeClass", "name": "d"},
        "requirements": [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": list(families)}],
        "taints": list(taints),
    }
    return {"kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {"template": {"spec": made}, **spec}}


def asking(gpus: object, name: str = "nvidia.com/gpu", **spec: Any) -> Raw:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": {"limits": {name: str(gpus)}}}], **spec}}


@examples(120, 5000)
@given(random=randoms())
def test_what_may_run_somewhere_is_not_warned_of(random: Random) -> None:
    """Whatever nodes there are: of a pod that is warned of, the judgement of every node by all its labels is that none ever runs it."""
    objects = [random_places.node(random, f"n{i}") for i in range(random.randint(1, 4))]
    seen, fleet = snapshot(objects), fleet_of(objects, catalog=CATALOG, tables={})
    for i in range(4):
        pod = random_places.pod(random, f"p{i}", [one["metadata"]["name"] for one in objects])
        if said(judged(pod, seen)):
            assert best(pod, fleet) == "never", pod


def test_that_law_says_something() -> None:
    """Of four hundred such pods, some are warned of."""
    random, found = Random(3), 0
    for _ in range(100):
        objects = [random_places.node(random, f"n{i}") for i in range(2)]
        seen = snapshot(objects)
        found += sum(bool(said(judged(random_places.pod(random, "p", ["n0"]), seen))) for _ in range(4))
    assert found > 9


@examples(50, 2000)
@given(random=randoms())
def test_it_is_only_a_warning(random: Random) -> None:
    """All else is as it were with nothing known of nodes; in any order of the objects, and once more, it is the same."""
    objects = [random_places.node(random, f"n{i}") for i in range(random.randint(1, 3))] + [pool(taints=(TAINT,))] * random.randint(0, 1)
    pod = random_places.pod(random, "p", ["n0"])
    for phase in ("mutate", "validate"):
        seen = snapshot(objects)
        with_it, without = judged(pod, seen, phase), judged(pod, snapshot(objects, all_nodes=False), phase)
        assert replace(with_it, remarks=()) == replace(without, remarks=())
        assert [remark for remark in with_it.remarks if remark.code != CODE] == list(without.remarks)
        assert with_it == judged(pod, snapshot(random.sample(objects, len(objects))), phase) == judged(pod, seen, phase)
    assert not said(judged(pod, snapshot(objects), "mutate"))


@pytest.mark.parametrize(
    ("objects", "pod"),
    [
        ([node(4, TAINT)], asking(4)),
        ([node(4)], asking(8)),
        ([node(4, {**TAINT, "effect": "NoExecute"})], asking(1)),
        ([node(4)], asking(1, "amd.com/gpu")),
        ([node(4), node(2, name="n2")], asking(5)),
        ([pool(taints=(TAINT,))], asking(1)),
        ([pool()], asking(16)),
        ([pool()], asking(1, nodeSelector={"karpenter.k8s.aws/instance-family": "p5"})),
        ([pool(limits={"nvidia.com/gpu": "2"})], asking(4)),
        ([node(4, TAINT, providerID="aws:///z/i", labels={"karpenter.sh/nodepool": "gpu"}), pool(taints=(TAINT,))], asking(4)),
        ([node(4, TAINT, providerID="k3s://n1")], asking(4)),
    ],
)
def test_what_nothing_runs_is_told(objects: list[Raw], pod: Raw) -> None:
    """With code, fact and fix in the first 200 characters, and without the name of the pod; no one is denied for it."""
    verdict = judged(pod, snapshot(objects))
    (sentence,) = said(verdict)
    assert len(sentence) <= 200
    assert verdict.violations == ()


@pytest.mark.parametrize(
    ("objects", "pod"),
    [
        ([], asking(4)),
        ([node(4, {**TAINT, "effect": "PreferNoSchedule"})], asking(4)),
        ([node(4, TAINT)], asking(4, tolerations=[{"operator": "Exists"}])),
        ([node(4, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})], asking(4)),
        ([node(4, TAINT), pool()], asking(4)),
        ([node(4, TAINT), pool(group="karpenter.example.com")], asking(4)),
        ([node(4, TAINT, labels={"cloud.google.com/gke-nodepool": "p"})], asking(4)),
        ([node(4, TAINT, labels={"agentpool": "p"})], asking(4)),
        ([node(4, TAINT, providerID="aws:///z/i")], asking(4)),
        ([node(4, TAINT, providerID="aws:///z/i"), pool(families=("m7i",))], asking(4)),
        ([node(4, TAINT, labels={"karpenter.sh/nodepool": "unseen"}), pool(families=("m7i",))], asking(4)),
        ([node(4, TAINT), node(0, name="n2", labels={"nvidia.com/gpu.product": "NVIDIA-L4"})], asking(4)),
        (
            [node(4, TAINT), {"kind": "DeviceClass", "metadata": {"name": "g"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}}],
            asking(4),
        ),
        ([node(4)], asking(1, "nvidia.com/mig-1g.5gb")),
        ([node(4, TAINT)], asking(4, schedulerName="volcano")),
        ([node(4, TAINT)], asking(4, nodeName="n1")),
        ([node(4, TAINT)], asking("many")),
        ([node(4, TAINT)], {**asking(4), "metadata": {"labels": {"kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/queue-name": "q"}}}),
        ([node(4, TAINT)], asking(4, schedulingGates=[{"name": "example.com/quota"}])),
        ([node(4, TAINT), pool(families=("m7i",))], asking(4)),
        ([node(4)], asking(4, nodeSelector={"team": "ml"})),
        ([node(4)], {"spec": {"containers": [{"name": "c"}]}}),
    ],
)
def test_where_it_is_not_certain_nothing_is_said(objects: list[Raw], pod: Raw) -> None:
    """Nothing known, another autoscaler, devices that may still come, or another who decides."""
    assert said(judged(pod, snapshot(objects, queues=("kueue",)))) == []


def test_who_may_not_see_all_nodes_says_nothing() -> None:
    """Files are no cluster; nor is one whose nodes may not be listed. The brake on all policies is one on this too."""
    assert said(judged(asking(8), snapshot([node(4)], all_nodes=False))) == []
    assert said(judged(asking(8), snapshot([node(4)], max_mode="Audit"))) == []
    assert said(judged(asking(8), snapshot([node(4)], max_mode="Warn"))) != []


def test_an_update_is_not_warned_of() -> None:
    """The pod has a place by then, or has been told."""
    assert said(judged(asking(8), snapshot([node(4)]), operation="UPDATE", old_pod=with_defaults(asking(8)))) == []
