"""Node affinity: where it is written in pods of every shape, and that what we do not know passes."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest

from policies.engine import evaluate
from policies.facts.cluster_facts import ClusterFacts
from policies.request import Request
from tests.support.cases import golden
from tests.support.snapshots import build

CATALOG = golden.catalog_with()
POLICY = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": {"mode": "Enforce", "require": {"models": {"in": ["T4"]}}}}
FACTS = build(golden.policies_of([POLICY], CATALOG), CATALOG, platforms=("karpenter-aws",)).facts_for("ml")
T4 = {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": ["t4"]}
ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def edited(affinity: object) -> Any:
    """The pod's affinity after the patch."""
    pod = {"spec": {"affinity": affinity, "containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
    patch = evaluate(Request(namespace="ml", pod=pod), FACTS).patch
    return jsonpatch.apply_patch(pod, list(patch))["spec"]["affinity"]


def terms(*items: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(items)}}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, terms({"matchExpressions": [T4]})),
        ({}, terms({"matchExpressions": [T4]})),
        ({"nodeAffinity": None}, terms({"matchExpressions": [T4]})),
        ({"nodeAffinity": {REQUIRED: None}}, terms({"matchExpressions": [T4]})),
        ({"podAffinity": {"x": 1}}, {"podAffinity": {"x": 1}, **terms({"matchExpressions": [T4]})}),
        (
            {"nodeAffinity": {"new-field": [1]}},
            {"nodeAffinity": {"new-field": [1], REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [T4]}]}}},
        ),
        (terms({"matchExpressions": [ZONE]}), terms({"matchExpressions": [ZONE, T4]})),
        (terms({"matchExpressions": [ZONE], "new-field": 1}), terms({"matchExpressions": [ZONE, T4], "new-field": 1})),
        (
            terms({"matchExpressions": None, "matchFields": [{**ZONE, "key": "metadata.name", "operator": "NotIn"}]}),
            terms({"matchExpressions": [T4], "matchFields": [{**ZONE, "key": "metadata.name", "operator": "NotIn"}]}),
        ),
        (
            terms({}, {"matchExpressions": []}, {"matchExpressions": [ZONE]}),
            terms({}, {"matchExpressions": []}, {"matchExpressions": [ZONE, T4]}),
        ),
        (terms({"matchExpressions": [T4, ZONE]}), terms({"matchExpressions": [T4, ZONE]})),
    ],
    ids=str,
)
def test_the_requirement_is_put_where_the_pod_has_room_for_it(before: object, after: object) -> None:
    """Null and absent are the same; fields that Berth does not know stay; empty terms stay empty."""
    assert edited(before) == after


# --- who wrote a slice's label -----------------------------------------------------------------------------------------

SLICE = {"kind": "ClusterGPUPolicy", "metadata": {"name": "slice"}, "spec": {"mode": "Enforce", "default": {"mig": {"slice": "10gb"}}}}
ON_DEMAND = {"kind": "ClusterGPUPolicy", "metadata": {"name": "od"}, "spec": {"mode": "Enforce", "require": {"capacity": ["on-demand"]}}}
A100 = {"kind": "ClusterGPUPolicy", "metadata": {"name": "a100"}, "spec": {"mode": "Enforce", "require": {"models": {"in": ["A100-80GB"]}}}}
NOT_ZONE = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]}
SHAPES: tuple[object, ...] = (
    None, {}, {"nodeAffinity": None}, {"nodeAffinity": {REQUIRED: None}}, terms({"matchExpressions": [ZONE]}),
    terms({"matchExpressions": [ZONE]}, {"matchExpressions": [{**ZONE, "values": ["b"]}]}), terms(NOT_ZONE),
    terms({"matchExpressions": None, **NOT_ZONE}), terms({}, {"matchExpressions": [ZONE]}, NOT_ZONE),
)  # fmt: skip


@pytest.mark.parametrize(
    ("platforms", "strategy", "label"),
    [
        (("gke",), "mixed", "cloud.google.com/gke-gpu-partition-size"),
        (("gfd",), "single", "nvidia.com/gpu.product"),
        (("gke", "gfd"), "single", "cloud.google.com/gke-gpu-partition-size"),
    ],
    ids=str,
)
@pytest.mark.parametrize("others", [(), (ON_DEMAND,), (A100,), (ON_DEMAND, A100)], ids=len)
def test_the_label_of_a_slice_is_always_of_the_rule_of_slices(
    platforms: tuple[str, ...], strategy: str, label: str, others: tuple[dict[str, Any], ...]
) -> None:
    """Whatever else is required, and whatever shape the pod's own terms have: an edit with the label is of mig_resources, and with nothing
    else that the other rule could have written by itself."""
    policies = golden.policies_of([SLICE, *others], CATALOG)
    values = {"cloud.google.com/gke-gpu-partition-size": "1g.10gb", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"}
    node = {"metadata": {"name": "cut", "labels": {label: values[label]}}, "status": {"capacity": {"nvidia.com/gpu": "7"}}}
    cluster = ClusterFacts.from_objects([{"kind": "Node", **node}])
    facts = build(policies, CATALOG, platforms=platforms, mig_strategy=strategy, cluster=cluster).facts_for("ml")
    for shape in SHAPES:
        pod = {"spec": {"affinity": shape, "containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
        found = [edit for edit in evaluate(Request(namespace="ml", pod=pod), facts).edits if label in repr(edit.value)]
        assert found, shape
        for edit in found:
            assert edit.rule == "mig_resources", (shape, edit)
            assert "ClusterGPUPolicy/slice" in edit.policies
