"""Defaults where all nodes and NodePools are known: none chooses what no place has."""

from __future__ import annotations

from typing import Any

import pytest

from policies.engine import evaluate
from policies.facts.cluster_facts import ClusterFacts
from policies.request import Request
from policies.verdict import Verdict
from tests.support.cases import golden
from tests.support.snapshots import build

Raw = dict[str, Any]
CATALOG = golden.catalog_with()
T4 = {"nvidia.com/gpu.product": "Tesla-T4"}
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
AWS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
GFD = ("gfd",)


def node(labels: Raw, devices: Raw, **spec: Any) -> Raw:
    return {"kind": "Node", "metadata": {"name": str(labels), "labels": labels}, "spec": spec, "status": {"capacity": devices}}


def pool(**requirements: list[str]) -> Raw:
    listed = [{"key": f"karpenter.{key.replace('__', '/')}", "operator": "In", "values": values} for key, values in requirements.items()]
    return {"kind": "NodePool", "metadata": {"name": "g"}, "spec": {"template": {"spec": {"nodeClassRef": AWS, "requirements": listed}}}}


def verdict_on(places: list[Raw], platforms: tuple[str, ...], *, all_nodes: bool = True, **default: Any) -> Verdict:
    """Return the verdict on a pod with one GPU, under this default."""
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": {"mode": "Enforce", "default": default}}
    facts = ClusterFacts.from_objects(places)
    built = build(golden.policies_of([policy], CATALOG), CATALOG, platforms=platforms, cluster=facts, all_nodes=all_nodes)
    pod = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
    return evaluate(Request(namespace="ml", pod=pod), built.facts_for("ml"))


WHOLE, CUT = {"nvidia.com/gpu": "1"}, {"nvidia.com/mig-1g.20gb": "4"}


@pytest.mark.parametrize(
    ("places", "remarks"),
    [
        ([node(T4, WHOLE)], ["not offered"]),
        ([node(A100, WHOLE)], ["not offered"]),
        ([node(T4, WHOLE), node(A100, CUT)], []),
        ([node(A100, {"nvidia.com/mig-2g.20gb": "3"})], []),
        ([node(A100, CUT, providerID="aws:///a/i-1")], []),
        ([node(A100, WHOLE, providerID="aws:///a/i-1")], ["not known"]),
        ([], ["not known"]),
    ],
    ids=[
        "no model has it",
        "not set up",
        "some nodes",
        "another profile",
        "more nodes may come",
        "none has it and more may come",
        "no nodes",
    ],
)
def test_a_slice_is_written_only_where_nodes_offer_it(places: list[Raw], remarks: list[str]) -> None:
    """The pod keeps its whole GPU if no known node offers a slice, whether or not more may come; the platform team is told."""
    found = verdict_on(places, GFD, mig={"slice": "20gb"})
    assert any(edit.rule == "mig_resources" for edit in found.edits) is not bool(remarks)
    assert [r.found.name for r in found.remarks if r.code == "BERTH-210"] == remarks


@pytest.mark.parametrize(
    ("places", "platform", "default", "applies"),
    [
        ([node(T4, WHOLE)], "gfd", {"models": {"in": ["L4"]}}, False),
        ([node(T4, WHOLE)], "gfd", {"models": {"in": ["L4", "T4"]}}, True),
        ([node({}, WHOLE)], "gfd", {"models": {"in": ["L4"]}}, True),
        ([pool(**{"k8s.aws__instance-gpu-name": ["t4"]})], "karpenter-aws", {"models": {"in": ["L4"]}}, False),
        ([pool(**{"k8s.aws__instance-gpu-name": ["t4", "l4"]})], "karpenter-aws", {"models": {"in": ["L4"]}}, True),
        ([pool(**{"sh__capacity-type": ["on-demand"]})], "karpenter-aws", {"capacity": ["spot"]}, False),
        ([pool(**{"sh__capacity-type": ["spot", "on-demand"]})], "karpenter-aws", {"capacity": ["spot"]}, True),
    ],
)
def test_a_default_that_no_place_has_is_left_out(places: list[Raw], platform: str, default: Raw, *, applies: bool) -> None:
    """A default that would leave the pod no place is not written, and the platform team is told; the author's pod then runs."""
    found = verdict_on(places, (platform,), **default)
    assert any(edit.rule == "node_affinity" for edit in found.edits) is applies
    assert [r.found.name for r in found.remarks if r.code == "BERTH-204"] == ([] if applies else ["on no node"])
    unknown = verdict_on(places, (platform,), all_nodes=False, **default)
    assert any(edit.rule == "node_affinity" for edit in unknown.edits)
