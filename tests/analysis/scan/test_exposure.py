"""What may be lost of pods that run: by the labels of their nodes, what they say of their length, and what protects them."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.audit.stored_pod import stored, widest
from analysis.scan.exposure import Exposure, exposure
from policies.facts.cluster_facts import ClusterFacts
from policies.policy import PolicySet
from tests.support.generators.random_worlds import catalog
from tests.support.snapshots import build

WIDE = widest(catalog())
KARPENTER = {"karpenter.sh/nodepool": "gpu", "karpenter.k8s.aws/instance-family": "p4d", "node.kubernetes.io/instance-type": "p4d.24xlarge"}
NODES = {
    "spot": {**KARPENTER, "karpenter.sh/capacity-type": "spot"},
    "paid": {**KARPENTER, "karpenter.sh/capacity-type": "on-demand"},
    "bare": {},
}
SNAPSHOT = build(PolicySet(), catalog(), cluster=ClusterFacts(nodes=NODES))
PROTECTED = {"karpenter.sh/do-not-disrupt": "true"}
HOUR = 3600.0


def found(node: str, *, kind: str = "Job", age: float | None = HOUR, grace: int = 30, **annotations: str) -> Exposure:
    owner = [{"apiVersion": "batch/v1", "kind": kind, "name": "j", "uid": "j", "controller": True}] if kind else []
    metadata: dict[str, Any] = {"name": "p", "namespace": "n", "ownerReferences": owner, "annotations": annotations}
    containers = [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    spec = {"containers": containers, "terminationGracePeriodSeconds": grace, **({"nodeName": node} if node else {})}
    return exposure(stored({"metadata": metadata, "spec": spec}, WIDE), SNAPSHOT, age)


@pytest.mark.parametrize(("node", "spot"), [("spot", True), ("paid", False), ("bare", False), ("gone", False), ("", False)])
def test_spot_is_what_the_node_says(node: str, *, spot: bool) -> None:
    """Of a pod without a node, or on one that may not be read, nothing is claimed."""
    assert found(node).spot is spot


@pytest.mark.parametrize(
    ("given", "unprotected"),
    [
        ({"age": 3 * HOUR}, True),
        ({"age": HOUR}, False),
        ({"age": None}, False),
        ({"age": HOUR, "berth.dev/expected-duration": "6h"}, True),
        ({"age": 9 * HOUR, "berth.dev/expected-duration": "1h"}, False),
        ({"age": 3 * HOUR, "grace": 600, **PROTECTED}, False),
        ({"age": 3 * HOUR, "grace": 600}, True),
        ({"age": 3 * HOUR, **PROTECTED}, True),
        ({"age": 3 * HOUR, "kind": "ReplicaSet"}, False),
        ({"age": 3 * HOUR, "kind": ""}, False),
    ],
)
def test_a_long_run_needs_a_mark_and_time(given: dict[str, Any], *, unprotected: bool) -> None:
    """It is long by what it says, else by its age; only what runs to an end is one."""
    assert found("paid", **given).unprotected is unprotected
