"""Filled fields: what the golden cases do not reach."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from policies.engine import evaluate
from policies.request import Request
from policies.verdict import Verdict
from tests.support.cases import golden
from tests.support.snapshots import build

CATALOG = golden.catalog_with()
GPU: dict[str, Any] = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}


def judged(spec: dict[str, Any], phase: Literal["mutate", "validate"] = "mutate", user: str = "", **pod: Any) -> Verdict:
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": {"mode": "Enforce", **spec}}
    facts = build(golden.policies_of([policy], CATALOG), CATALOG, platforms=("karpenter-aws",)).facts_for("ml")
    metadata = pod.pop("metadata", {})
    return evaluate(
        Request(namespace="ml", user=user, phase=phase, pod={"metadata": metadata, "spec": {"containers": [GPU], **pod}}), facts
    )


def codes(verdict: Verdict) -> list[str]:
    return [violation.code for violation in verdict.violations]


@pytest.mark.parametrize(
    ("seconds", "denied"), [(None, True), (3600, False), (3601, True), (1, False), (True, True), ("60", True)], ids=repr
)
def test_a_longest_time_is_judged_on_the_final_pod(seconds: object, *, denied: bool) -> None:
    """A pod without a deadline, or with what is none, runs for ever once nobody can write one any more."""
    found = judged({"require": {"maxRuntime": "1h"}}, "validate", activeDeadlineSeconds=seconds)
    assert codes(found) == (["BERTH-143"] if denied else [])


def test_why_a_deadline_is_missing_is_told() -> None:
    """Where Berth's record says that it was there, somebody else has removed it."""
    record = '[{"by":["x"],"rule":"max_runtime","path":"/spec/activeDeadlineSeconds","is":"0"}]'
    undone = judged({"require": {"maxRuntime": "1h"}}, "validate", metadata={"annotations": {"berth.dev/applied": record}})
    changed = judged({"require": {"maxRuntime": "1h"}}, "validate")
    assert [v.more[0].name for found in (undone, changed) for v in found.violations] == ["undone", "the policies changed"]


def test_the_daemon_set_controllers_pods_run_for_ever() -> None:
    """They alone: an owner that an author writes spares nobody."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
    pinned = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    controller = "system:serviceaccount:kube-system:daemon-set-controller"
    assert codes(judged({"require": {"maxRuntime": "1h"}}, "validate", controller, affinity=pinned)) == []
    assert codes(judged({"require": {"maxRuntime": "1h"}}, "validate", "alice", affinity=pinned)) == ["BERTH-143"]
