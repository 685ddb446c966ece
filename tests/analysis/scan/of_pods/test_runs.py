"""Runs that may be cut short: on spot for long, without the mark that their platform heeds, without time for a checkpoint."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.recorded.parts import GPU, LONG_AGO, node, pod
from tests.support.recorded.scanned import scanned

JOB = ("batch/v1", "Job", "train")
KARPENTER = {"karpenter.k8s.aws/instance-family": "p4d", "karpenter.sh/nodepool": "gpu", "node.kubernetes.io/instance-type": "p4d.24xlarge"}
SPOT = {"karpenter.sh/capacity-type": "spot"}
GKE = {"cloud.google.com/gke-nodepool": "a100", "cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}
MARK, EVICT, GRACE = "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict", "terminationGracePeriodSeconds"
SOON = "9999-01-01T00:00:00Z"
"""Made after any test runs: of no age"""


def run(labels: dict[str, str], created: str = LONG_AGO, **changes: Any) -> Any:
    one = pod("train-0", "research", {GPU: 4}, on="n", owner=JOB, **changes)
    one["metadata"]["creationTimestamp"] = created
    return scanned([node("n", labels, {GPU: 8}), one])


@pytest.mark.parametrize(
    ("labels", "created", "changes", "length"),
    [
        (KARPENTER | SPOT, LONG_AGO, {}, "runs"),
        (KARPENTER | SPOT, SOON, {}, None),
        (KARPENTER | SPOT, SOON, {"annotations": {"berth.dev/expected-duration": "6h"}}, "says"),
        (KARPENTER | SPOT, LONG_AGO, {"annotations": {"berth.dev/expected-duration": "30m"}}, None),
        (KARPENTER | SPOT, SOON, {"activeDeadlineSeconds": 90000}, "says"),
        (KARPENTER | SPOT, LONG_AGO, {"activeDeadlineSeconds": 600}, None),
        (KARPENTER | {"karpenter.sh/capacity-type": "on-demand"}, LONG_AGO, {}, None),
        (GKE | {"cloud.google.com/gke-spot": "true"}, LONG_AGO, {}, "runs"),
        (GKE, LONG_AGO, {}, None),
        ({}, LONG_AGO, {}, None),
    ],
)
def test_a_long_run_on_spot_is_found(labels: dict[str, str], created: str, changes: Any, length: str | None) -> None:
    """By its age, or by what its author says of it; the author's word counts before its age."""
    found = [finding.values["length"] for finding in run(labels, created, **changes).of("run-on-spot")]
    assert found == ([] if length is None else [length])


@pytest.mark.parametrize(
    ("labels", "changes", "lacks"),
    [
        (KARPENTER, {}, (MARK, GRACE)),
        (KARPENTER, {"annotations": {MARK: "true"}}, (GRACE,)),
        (KARPENTER, {"annotations": {MARK: "yes"}, GRACE: 600}, (MARK,)),
        (KARPENTER, {"annotations": {MARK: "1h"}, GRACE: 600}, (MARK,)),
        (KARPENTER, {"annotations": {MARK: "true"}, GRACE: 600}, None),
        (GKE, {"annotations": {MARK: "true"}, GRACE: 600}, (EVICT,)),
        (GKE, {"annotations": {EVICT: "false"}, GRACE: 600}, None),
        ({"nvidia.com/gpu.present": "true"}, {}, (GRACE,)),
        ({"nvidia.com/gpu.present": "true"}, {GRACE: 31}, None),
    ],
)  # fmt: skip
def test_what_a_run_lacks_depends_on_who_makes_its_node(labels: dict[str, str], changes: Any, lacks: tuple[str, ...] | None) -> None:
    """The mark of that autoscaler, as it reads it: a value that it ignores, or a duration that is over, protects nothing."""
    found = [finding.values["lacks"] for finding in run(labels, **changes).of("run-unprotected")]
    assert found == ([] if lacks is None else [lacks])


def test_a_server_is_no_run() -> None:
    """It is replaced by a rolling update, and must be able to move."""
    one = pod("llm-0", "web", {GPU: 8}, on="n", owner=("apps/v1", "ReplicaSet", "llm"))
    found = scanned([node("n", KARPENTER | SPOT, {GPU: 8}), one]).report.findings
    assert not any(finding.kind.startswith("run-") for finding in found)


def test_what_the_library_mends_is_judged_on_the_pod_as_it_would_be() -> None:
    """Four GPUs are a training run, which it keeps off spot and protects; one GPU is batch work, which it keeps off spot alone."""
    large = run(KARPENTER | SPOT)
    assert [finding.fixed for finding in (*large.of("run-on-spot"), *large.of("run-unprotected"))] == [1, 1]
    one = pod("train-0", "research", {GPU: 1}, on="n", owner=JOB)
    small = scanned([node("n", KARPENTER | SPOT, {GPU: 8}), one])
    assert [finding.fixed for finding in (*small.of("run-on-spot"), *small.of("run-unprotected"))] == [1, 0]
