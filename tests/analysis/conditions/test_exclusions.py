"""Requirements that leave nothing together."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.conditions import ObjectStatus, exclusions
from kube.labels import Expression, LabelSelector
from tests.analysis.conditions.found import condition, found, message_of, namespace, own, policy


@pytest.mark.parametrize(
    ("one", "other", "thing"),
    [
        ({"families": {"in": ["hopper"]}}, {"families": {"in": ["ampere"]}}, "no GPU satisfies both this families in [hopper]"),
        ({"capacity": ["spot"]}, {"capacity": ["on-demand"]}, "(capacity [on-demand])"),
        ({"capacity": ["spot"]}, {"longRuns": {"over": "1h", "capacity": ["on-demand"]}}, "(capacity [on-demand] for long runs)"),
        ({"gpusPerPod": {"oneOf": [8]}}, {"gpusPerPod": {"max": 4}}, "no number of GPUs satisfies both this gpusPerPod oneOf [8]"),
        ({"gracePeriod": {"min": "1h"}}, {"gracePeriod": {"max": "10m"}}, "no grace period satisfies both this gracePeriod min 1h"),
        ({"gracePeriod": {"min": "1h", "max": "2h"}}, {"gracePeriod": {"min": "3h"}}, "(gracePeriod min 3h)"),
        ({"gpuMemory": {"min": 141}}, {"models": {"in": ["T4"]}}, "(models in [T4])"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_both_are_told_what_excludes_what(one: dict[str, Any], other: dict[str, Any], thing: str) -> None:
    """A pod that both match is denied whatever its author writes."""
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
        "no GPU satisfies this families in [hopper, ampere] together with the requirements of ClusterGPUPolicy/b (families notIn [hopper]) "
        "and ClusterGPUPolicy/c (families notIn [ampere]), for example in namespace ml"
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
    assert one.message == "sharing [MIG] cannot be satisfied on karpenter-aws: every pod that the policy matches is denied"
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


def trial(finding: ObjectStatus) -> str:
    """The message of a policy that only audits and would conflict; "" where it would not."""
    one = condition(finding, "Conflicted")
    assert one is not None
    assert one.status == "False"
    assert (one.reason == "ConflictsInEnforce") is bool(one.message)
    return one.message


def test_a_trial_that_would_exclude_what_is_required_is_told_alone() -> None:
    """Of the cluster or of a namespace, by one policy in Enforce or by two together; the status of these does not change."""
    spot, on_demand = {"capacity": ["spot"]}, {"capacity": ["on-demand"]}
    for one in (policy("trial", mode="Audit", require=on_demand), own("trial", "ml", mode="Warn", require=on_demand)):
        both = found(policy("guard", require=spot), one)
        assert not message_of(both["guard"], "Conflicted")
        assert trial(both["trial"]).startswith(
            "In Enforce: no GPU satisfies both this capacity [on-demand] and the requirements of Cluster"
        )
    three = found(
        policy("a", require={"families": {"in": ["hopper", "ampere"]}}),
        policy("b", require={"families": {"notIn": ["hopper"]}}),
        policy("trial", mode="Audit", require={"families": {"notIn": ["ampere"]}}),
    )
    assert not message_of(three["a"], "Conflicted")
    assert not message_of(three["b"], "Conflicted")
    assert "ClusterGPUPolicy/a (families in [hopper, ampere]) and ClusterGPUPolicy/b" in trial(three["trial"])


def test_trials_do_not_count_each_other() -> None:
    """Each is tried alone beside what is in Enforce."""
    both = found(
        policy("a", mode="Audit", require={"capacity": ["spot"]}), own("b", "ml", mode="Audit", require={"capacity": ["on-demand"]})
    )
    assert [trial(one) for one in both.values()] == ["", ""]


def test_a_trial_that_leaves_nothing_by_itself_is_a_conflict() -> None:
    """No other policy is counted: it is wrong as it is written."""
    one = condition(found(policy("p", mode="Audit", require={"families": {"in": ["hopper"]}, "models": {"in": ["T4"]}}))["p"], "Conflicted")
    assert one is not None
    assert (one.status, one.reason, one.message[:12]) == ("True", "NothingOffered", "In Enforce: ")


def test_namespaces_that_the_registration_leaves_out_do_not_count() -> None:
    """Neither for a conflict, nor as an example, nor in the number of namespaces."""
    outside = Expression(key="kubernetes.io/metadata.name", operator="NotIn", values=("a-left-out",))
    spaces = namespace("a-left-out", team="x"), namespace("ml", team="x"), namespace("web", team="y")
    registered = LabelSelector(match_expressions=(outside,))
    chosen = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
    policies = policy("a", match=chosen, require={"capacity": ["spot"]}), policy("b", require={"capacity": ["on-demand"]})
    both = found(*policies, *spaces, registered=registered)
    assert both["a"].where == "1 namespace with team=x"
    assert "for example in namespace ml" in message_of(both["a"], "Conflicted")
    both = found(*policies, own("o", "a-left-out", require={"capacity": ["reserved"]}), *spaces[::2], registered=registered)
    assert both["a"].where == "0 namespaces with team=x"
    assert not any(message_of(one, "Conflicted") for one in both.values())
    assert message_of(found(*policies, *spaces[::2])["a"], "Conflicted"), "it does count where the registration has it"
