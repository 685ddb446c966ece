"""Remarks on a pod's placement: slices that no machine of a platform has."""

from __future__ import annotations

import pytest

from policies.engine import evaluate
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
