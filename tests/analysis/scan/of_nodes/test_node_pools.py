"""The settings of NodePools that hurt, each alone; and those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.recorded.parts import GPU, TAINT, node, pod
from tests.support.recorded.scanned import Scanned, scanned

RUN = ("batch/v1", "Job", "train")
FAMILY = "karpenter.k8s.aws/instance-family"


def kept(**changes: Any) -> dict[str, Any]:
    """A NodePool for GPUs without any trap, but for what is changed: ``template``, ``disruption`` and others of its spec."""
    requirement = {"key": FAMILY, "operator": "In", "values": ["p4d"]}
    template = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
        "requirements": [requirement],
        "expireAfter": "Never",
        "terminationGracePeriod": "1h",
        "taints": [TAINT],
    }
    spec = {
        "template": {"spec": template | changes.pop("template", {})},
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m"} | changes.pop("disruption", {}),
        "limits": {GPU: "64"},
    }
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": spec | changes}


def found(pool: dict[str, Any], grace: int = 1800, alias: str = "al2023@v20260901") -> Scanned:
    """With a run on a node of it."""
    labels = {"karpenter.sh/nodepool": "gpu", FAMILY: "p4d", "node.kubernetes.io/instance-type": "p4d.24xlarge"}
    marks = {"karpenter.sh/do-not-disrupt": "true"}
    one = pod("train-0", "ns", {GPU: 8}, on="n", owner=RUN, annotations=marks, terminationGracePeriodSeconds=grace)
    spec = {"amiSelectorTerms": [{"alias": alias}]}
    node_class = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"}, "spec": spec}
    return scanned([node("n", labels, {GPU: 8}, TAINT), one, pool, node_class])


UNDERUTILIZED = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
TYPE = "node.kubernetes.io/instance-type"
TRAPS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"disruption": UNDERUTILIZED}, ["pool-consolidates"]),
    ({"disruption": {"consolidationPolicy": "WhenUnderutilized"}}, ["pool-consolidates"]),
    ({"disruption": {**UNDERUTILIZED, "consolidateAfter": "Never"}}, []),
    ({"disruption": {**UNDERUTILIZED, "budgets": [{"nodes": "0"}]}}, []),
    ({"disruption": {**UNDERUTILIZED, "budgets": [{"nodes": "0", "reasons": ["Underutilized"]}]}}, []),
    ({"disruption": {**UNDERUTILIZED, "budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}}, ["pool-consolidates"]),
    ({"disruption": {**UNDERUTILIZED, "budgets": [{"nodes": "0", "schedule": "@daily", "duration": "8h"}]}}, ["pool-consolidates"]),
    ({"disruption": {"consolidationPolicy": "Balanced"}}, ["pool-consolidates"]),
    ({"disruption": UNDERUTILIZED, "replicas": 2, "limits": {"nodes": 2}}, []),
    ({"replicas": 2, "limits": None, "template": {"expireAfter": None}}, ["pool-expires"]),
    ({"template": {"expireAfter": "720h"}}, ["pool-expires"]),
    ({"template": {"expireAfter": None}}, ["pool-expires"]),
    ({"template": {"terminationGracePeriod": None}}, ["pool-no-grace"]),
    ({"template": {"terminationGracePeriod": "10m"}}, ["pool-short-grace"]),
    ({"limits": {"cpu": "1000"}}, []),
    ({"limits": {"nodes": "4"}}, []),
    ({"limits": {"example.com/fpga": "4"}}, ["pool-no-gpu-limit"]),
    ({"limits": None}, ["pool-no-gpu-limit"]),
    ({"template": {"taints": None}}, ["pool-untainted"]),
    ({"template": {"taints": [TAINT | {"effect": "PreferNoSchedule"}]}}, ["pool-untainted"]),
    ({"template": {"requirements": [{"key": FAMILY, "operator": "In", "values": ["p4d", "g6f"]}]}}, ["pool-family-without-gpu"]),
    ({"template": {"requirements": [{"key": TYPE, "operator": "In", "values": ["gr6f.4xlarge"]}]}}, ["pool-family-without-gpu"]),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "kinds"), TRAPS)
def test_each_trap_is_found_alone(changes: dict[str, Any], kinds: list[str]) -> None:
    """With the runs on its nodes; a budget that lets no node be disrupted at any time is none."""
    report = found(kept(**changes)).report
    assert [one.kind for one in report.findings] == kinds
    assert [(one.pods, one.gpus) for one in report.findings] == [(1, 8)] * len(kinds)


def test_the_newest_image_makes_nodes_drift_unless_a_budget_forbids_it() -> None:
    """Of the class that the NodePool names."""
    (one,) = found(kept(), alias="al2023@latest").report.findings
    assert (one.kind, one.where.name, one.values["alias"], one.values["pools"]) == (
        "node-class-latest-image",
        "gpu",
        "al2023@latest",
        ("gpu",),
    )
    assert not found(kept(disruption={"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}), alias="al2023@latest").report.findings


def test_older_pools_and_those_of_other_makers_are_read_as_they_read_themselves() -> None:
    """v1beta1 has the expiry beside the budgets; EKS Auto Mode ends a drain by itself, and its families are named by a key of its own."""
    beta = kept(disruption={"expireAfter": "720h"}, template={"expireAfter": None}) | {"apiVersion": "karpenter.sh/v1beta1"}
    assert [one.kind for one in found(beta).report.findings] == ["pool-expires"]
    requirement = {"key": "eks.amazonaws.com/instance-family", "operator": "In", "values": ["g6", "p99"]}
    reference = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "gpu"}
    auto = kept(template={"nodeClassRef": reference, "requirements": [requirement], "terminationGracePeriod": None}, limits={})
    assert [one.kind for one in scanned([auto]).report.findings] == ["pool-no-gpu-limit"]


def test_a_pool_without_gpus_has_no_traps() -> None:
    """Whatever its settings: those of other machines are no business of this command."""
    pool = kept(template={"requirements": [{"key": FAMILY, "operator": "In", "values": ["m6i"]}], "expireAfter": "1h"}, limits={})
    assert not scanned([pool]).report.findings


COUNT = "karpenter.k8s.aws/instance-gpu-count"
CATEGORY = "karpenter.k8s.aws/instance-category"
ANY = [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]


@pytest.mark.parametrize(
    ("changes", "resource"),
    [
        ({"template": {"requirements": ANY}}, GPU),
        ({"template": {"requirements": ANY, "taints": None}, "limits": {"amd.com/gpu": "8"}}, None),
        ({"template": {"requirements": ANY, "taints": [{"key": "habana.ai/gaudi", "effect": "NoSchedule"}]}}, GPU),
        ({"template": {"requirements": [{"key": CATEGORY, "operator": "In", "values": ["inf", "trn"]}]}}, "aws.amazon.com/neuron"),
        ({"template": {"requirements": [{"key": FAMILY, "operator": "In", "values": ["trn1", "inf2"]}]}}, "aws.amazon.com/neuron"),
        ({"template": {"requirements": [{"key": FAMILY, "operator": "In", "values": ["dl1"]}]}}, "habana.ai/gaudi"),
        ({"template": {"requirements": [{"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "Exists"}], "taints": None}}, GPU),
        ({"template": {"requirements": [{"key": COUNT, "operator": "Gt", "values": ["0"]}], "taints": None}}, GPU),
        ({"template": {"requirements": [{"key": FAMILY, "operator": "In", "values": ["g4ad"]}]}}, "amd.com/gpu"),
        ({"template": {"requirements": ANY, "nodeClassRef": {"group": "karpenter.example.com", "kind": "C", "name": "c"}}}, GPU),
    ],
)  # fmt: skip
def test_pools_for_accelerators_are_known_by_what_they_name(changes: dict[str, Any], resource: str | None) -> None:
    """By a taint, a limit, a requirement on a label of GPUs, or families of any maker; also of a node class that nobody knows."""
    template = changes.get("template", {}) | {"expireAfter": "1h"}
    pool = kept(**changes | {"template": template, "limits": changes.get("limits", {})})
    findings = {one.kind: one for one in scanned([pool]).report.findings}
    assert "pool-expires" in findings
    limit = findings.get("pool-no-gpu-limit")
    assert (None if limit is None else limit.values["resource"]) == resource


@pytest.mark.parametrize(
    "changes",
    [
        {"template": {"requirements": ANY, "taints": None}, "limits": {"cpu": "100"}},
        {"template": {"requirements": [{"key": TYPE, "operator": "In", "values": ["m5.large"]}], "taints": None}, "limits": {"cpu": "100"}},
        {"template": {"requirements": ANY, "taints": None}, "limits": {GPU: "0"}},
        {"template": {"requirements": [{"key": CATEGORY, "operator": "In", "values": ["m", "c"]}]}},
        {"template": {"requirements": [{"key": COUNT, "operator": "DoesNotExist"}], "taints": None}, "limits": {}},
        {"template": {"requirements": ANY, "taints": [TAINT | {"effect": "PreferNoSchedule"}]}, "limits": {}},
    ],
)  # fmt: skip
def test_other_pools_are_none(changes: dict[str, Any]) -> None:
    """A limit of none, machines without accelerators, and a taint that keeps nothing off."""
    template = changes["template"] | {"expireAfter": "1h"}
    assert not scanned([kept(**changes | {"template": template})]).report.findings
