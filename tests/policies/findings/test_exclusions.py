"""Requirements that leave nothing together."""

from __future__ import annotations

from typing import Any

import pytest

from policies.findings import exclusions
from tests.policies.findings.found import condition, found, message_of, namespace, own, policy


@pytest.mark.parametrize(
    ("one", "other", "thing"),
    [
        ({"families": {"in": ["hopper"]}}, {"families": {"in": ["ampere"]}}, "no GPU is inside this families in [hopper]"),
        ({"capacity": ["spot"]}, {"capacity": ["on-demand"]}, "(capacity [on-demand])"),
        ({"capacity": ["spot"]}, {"longRuns": {"over": "1h", "capacity": ["on-demand"]}}, "(capacity [on-demand] for long runs)"),
        ({"gpusPerPod": {"oneOf": [8]}}, {"gpusPerPod": {"max": 4}}, "no number of GPUs is inside this gpusPerPod oneOf [8]"),
        ({"gracePeriod": {"min": "1h"}}, {"gracePeriod": {"max": "10m"}}, "no grace period is inside this gracePeriod min 1h"),
        ({"gracePeriod": {"min": "1h", "max": "2h"}}, {"gracePeriod": {"min": "3h"}}, "(gracePeriod min 3h)"),
        ({"gpuMemory": {"min": 141}}, {"models": {"in": ["T4"]}}, "(models in [T4])"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_both_are_told_what_excludes_what(one: dict[str, Any], other: dict[str, Any], thing: str) -> None:
    """A pod that both match is refused whatever its author writes."""
    both = found(policy("a", require=one), policy("b", require=other))
    assert thing in message_of(both["a"], "Conflicted")
    assert "ClusterGPUPolicy/b" in message_of(both["a"], "Conflicted")
    assert "ClusterGPUPolicy/a" in message_of(both["b"], "Conflicted")


def test_bounds_of_grace_that_meet_exclude_nothing() -> None:
    """A minimum that is the other's maximum; maxima alone, whatever they are."""
    for one, other in (({"min": "1h"}, {"max": "1h"}), ({"max": "10s"}, {"max": "2h"}), ({"min": "10m", "max": "1h"}, {"min": "30m"})):
        both = found(policy("a", require={"gracePeriod": one}), policy("b", require={"gracePeriod": other}))
        assert not message_of(both["a"], "Conflicted")


def test_three_may_leave_nothing_where_no_two_do() -> None:
    """Each is told of the other two."""
    three = found(
        policy("a", require={"families": {"in": ["hopper", "ampere"]}}),
        policy("b", require={"families": {"notIn": ["hopper"]}}),
        policy("c", require={"families": {"notIn": ["ampere"]}}),
    )
    assert message_of(three["a"], "Conflicted").startswith(
        "no GPU is inside this families in [hopper, ampere] and what is required by "
        "ClusterGPUPolicy/b (families notIn [hopper]) and ClusterGPUPolicy/c (families notIn [ampere]) together, as in namespace ml"
    )
    assert all(message_of(one, "Conflicted") for one in three.values())


def test_where_no_pod_matches_both_nothing_is_excluded() -> None:
    """Other numbers of GPUs, other namespaces."""
    spaces = namespace("ml", team="x"), namespace("web", team="y")
    for one, other in (
        ({"gpus": {"max": 3}}, {"gpus": {"min": 4}}),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, {"namespaceSelector": {"matchLabels": {"team": "y"}}}),
    ):
        both = found(
            policy("a", match=one, require={"capacity": ["spot"]}), policy("b", match=other, require={"capacity": ["on-demand"]}), *spaces
        )
        assert not message_of(both["a"], "Conflicted")


def test_a_team_that_contradicts_a_guardrail_is_told_and_the_guardrail_is_not() -> None:
    """Nobody spoils the status of a policy of the cluster from within a namespace."""
    both = found(
        policy("guard", require={"families": {"in": ["hopper"]}}),
        own("odd", "ml", require={"families": {"in": ["ampere"]}}),
        own("fine", "web", require={"capacity": ["spot"]}),
    )
    assert "ClusterGPUPolicy/guard (families in [hopper])" in message_of(both["odd"], "Conflicted")
    assert not message_of(both["guard"], "Conflicted")
    assert not message_of(both["fine"], "Conflicted")


def test_a_team_may_complete_what_two_of_the_cluster_leave_open() -> None:
    """Three, of which one is its own, for the pods that its labels pick."""
    match = {"podSelector": {"matchLabels": {"tier": "x"}}}
    all_ = found(
        policy("a", require={"families": {"in": ["hopper", "ampere"]}}),
        policy("b", require={"families": {"notIn": ["hopper"]}}),
        own("c", "ml", match=match, require={"families": {"notIn": ["ampere"]}}),
    )
    assert "together" in message_of(all_["c"], "Conflicted")
    assert not message_of(all_["a"], "Conflicted")


def test_what_no_platform_offers_is_told() -> None:
    """A policy can exclude everything by itself."""
    one = condition(found(policy("a", require={"sharing": ["MIG"]}))["a"], "Conflicted")
    assert one is not None
    assert (one.status, one.reason) == ("True", "NothingOffered")
    assert one.message == "sharing [MIG] leaves nothing on karpenter-aws: every pod that it matches is refused"
    assert not message_of(found(policy("a", require={"sharing": ["MIG"]}), platforms=["gfd"])["a"], "Conflicted")


def test_too_many_to_compare_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is claimed of policies that were not reached."""
    monkeypatch.setattr(exclusions, "MOST_PAIRS", 2)
    some = [
        policy(f"p{i}", match={"gpus": {"min": i + 1, "max": i + 1}}, require={"capacity": ["spot" if i % 2 else "on-demand"]})
        for i in range(6)
    ]
    one = condition(found(*some)["p5"], "Conflicted")
    assert one is not None
    assert one.status == "Unknown"
