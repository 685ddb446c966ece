"""Remarks on a pod's placement: slices that no machine of a platform has."""

from __future__ import annotations

import pytest

from policies.engine import evaluate
from policies.facts.cluster_facts import ClusterFacts
from policies.request import Request
from tests.support.cases import golden
from tests.support.snapshots import build


@pytest.mark.parametrize(
    ("platforms", "resource", "advice"),
    [
        (("eks-nodegroup",), "mig-1g.6gb", "nearest: nvidia.com/mig-1g.5gb (p4d.24xlarge)"),
        (("gke",), "mig-4g.24gb", "nearest: cloud.google.com/gke-gpu-partition-size=4g.20gb (a2-highgpu-1g)"),
        (("eks-nodegroup", "gfd"), "mig-1g.6gb", None),
        (("eks-nodegroup",), "mig-1g.5gb", None),
        (("karpenter-aws",), "mig-1g.5gb", None),
        ((), "mig-1g.6gb", None),
    ],
)
def test_a_slice_that_no_machine_here_has_is_told(platforms: tuple[str, ...], resource: str, advice: str | None) -> None:
    """With the nearest that there is, and a machine that has it, as it is asked for there; nothing of slices that somebody has to cut."""
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": {"mode": "Enforce", "default": {"gracePeriod": "1m"}}}
    catalog = golden.catalog_with()
    built = build(golden.policies_of([policy], catalog), catalog, platforms=platforms)
    pod = {"spec": {"containers": [{"resources": {"limits": {f"nvidia.com/{resource}": 1}}}]}}
    found = evaluate(Request(namespace="ml", pod=pod), built.facts_for("ml"))
    fact = f"no machine of {' or '.join(platforms)} has nvidia.com/{resource}, a slice of A30; {advice}"
    assert [r.text for r in found.remarks if r.code == "BERTH-217"] == ([fact] if advice else [])


def test_an_example_is_a_model_that_the_cluster_has() -> None:
    """The other model that BERTH-221 names is one of the nodes, if all nodes are known and have some."""
    spec = {"mode": "Enforce", "default": {"models": {"in": ["L4"]}}}
    catalog = golden.catalog_with()
    policies = golden.policies_of([{"kind": "ClusterGPUPolicy", "metadata": {"name": "l4"}, "spec": spec}], catalog)
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": f"{family}-1", "labels": {"nvidia.com/gpu.family": family}},
            "status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}},
        }
        for family in ("ada-lovelace", "turing")
    ]
    built = build(policies, catalog, platforms=("gfd",), cluster=ClusterFacts.from_objects(nodes), all_nodes=True)
    pod = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
    (remark,) = [r for r in evaluate(Request(namespace="ml", pod=pod), built.facts_for("ml")).remarks if r.code == "BERTH-221"]
    assert "nvidia.com/gpu.family: turing" in remark.text
