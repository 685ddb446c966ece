"""Defaults that differ for the same pod."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.conditions import differences
from tests.analysis.conditions.found import condition, found, message_of, namespace, own, policy, template

SPOT, OTHER = {"capacity": ["spot"]}, {"capacity": ["on-demand"]}


@pytest.mark.parametrize(
    ("one", "other", "field"),
    [
        ({"nodeTemplate": "t"}, {"nodeTemplate": "u"}, "spec.default.nodeTemplate"),
        ({"mig": {"slice": "10gb"}}, {"mig": {"slice": "20gb"}}, "spec.default.mig"),
        ({"models": {"in": ["T4"]}}, {"models": {"in": ["L4"]}}, "spec.default.models"),
        (SPOT, OTHER, "spec.default.capacity"),
        ({"runtimeClass": "a"}, {"runtimeClass": "b"}, "spec.default.runtimeClass"),
        ({"priorityClass": "a"}, {"priorityClass": "b"}, "spec.default.priorityClass"),
        ({"schedulerName": "a"}, {"schedulerName": "b"}, "spec.default.schedulerName"),
        ({"topology": "rack"}, {"topology": "zone"}, "spec.default.topology"),
        (
            {"longRuns": {"over": "2h", "capacity": ["on-demand"]}},
            {"longRuns": {"over": "2h", "capacity": ["spot"]}},
            "spec.default.longRuns",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_both_are_told_on_every_axis(one: dict[str, Any], other: dict[str, Any], field: str) -> None:
    """With whom, on which field, and where for example."""
    both = found(policy("a", default=one), policy("b", default=other), template("t"), template("u"))
    wanted = f"{field} differs from ClusterGPUPolicy/b, for example in namespace ml: neither default applies to a pod that both match"
    assert message_of(both["a"], "Conflicted") == wanted
    assert "ClusterGPUPolicy/a" in message_of(both["b"], "Conflicted")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"gpus": {"max": 3}}, {"gpus": {"min": 4}}),
        ({"workloads": ["Job"]}, {"workloads": ["Notebook"]}),
        ({"podSelector": {"matchLabels": {"tier": "a"}}}, {"podSelector": {"matchLabels": {"tier": "b"}}}),
        (
            {"podSelector": {"matchLabels": {"tier": "a"}}},
            {"podSelector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a"]}]}},
        ),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, {"namespaceSelector": {"matchLabels": {"team": "y"}}}),
    ],
    ids=str,
)
def test_what_no_pod_can_match_together_is_no_conflict(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Disjoint numbers of GPUs, workloads, labels and namespaces."""
    spaces = namespace("ml", team="x"), namespace("web", team="y")
    both = found(policy("a", match=one, default=SPOT), policy("b", match=other, default=OTHER), *spaces)
    assert not message_of(both["a"], "Conflicted")
    assert message_of(found(policy("a", match=one, default=SPOT), policy("b", default=OTHER), *spaces)["a"], "Conflicted")


def test_a_narrower_scope_speaks_first() -> None:
    """A team that chooses otherwise than the cluster does not disagree with it, nor with another team."""
    all_ = found(policy("a", default=SPOT), own("b", "ml", default=OTHER), own("c", "web", default={"capacity": ["reserved"]}))
    assert not any(message_of(one, "Conflicted") for one in all_.values())
    assert "GPUPolicy/ml/d" in message_of(found(own("b", "ml", default=OTHER), own("d", "ml", default=SPOT))["b"], "Conflicted")


def test_long_runs_beat_capacity_where_both_are_long() -> None:
    """Policies that agree on short runs and on long ones may disagree on those in between."""

    def long(over: str) -> dict[str, Any]:
        return {"capacity": ["spot"], "longRuns": {"over": over, "capacity": ["on-demand"]}}

    assert not message_of(found(policy("a", default=long("2h")), policy("b", default=long("2h")))["a"], "Conflicted")
    between = message_of(found(policy("a", default=long("2h")), policy("b", default=long("4h")))["a"], "Conflicted")
    assert between.startswith("spec.default.longRuns differs from ClusterGPUPolicy/b")
    other = {"capacity": ["spot"], "longRuns": {"over": "2h", "capacity": ["reserved"], "unknownIsLong": False}}
    mine = {"capacity": ["spot"], "longRuns": {**long("2h")["longRuns"], "unknownIsLong": False}}
    assert message_of(found(policy("a", default=mine), policy("b", default=other))["a"], "Conflicted")


def test_five_are_named_and_the_rest_counted() -> None:
    """Of a hundred that say another thing."""
    others = [policy(f"p{i:03}", default=OTHER) for i in range(100)]
    message = message_of(found(policy("a", default=SPOT), *others)["a"], "Conflicted")
    assert "ClusterGPUPolicy/p004 and 95 more" in message
    assert "p005" not in message


@pytest.mark.parametrize("mode", ["Audit", "Warn"])
@pytest.mark.parametrize("scope", [policy, lambda name, **spec: own(name, "ml", **spec)], ids=["cluster", "namespace"])
def test_a_trial_conflicts_with_nothing_and_is_told_what_it_would(mode: str, scope: Any) -> None:
    """What is in Enforce acts all the same, so its status does not change; two trials don't count each other."""
    three = found(scope("a", default=SPOT), scope("b", mode=mode, default=OTHER), scope("c", mode=mode, default={"capacity": ["reserved"]}))
    acting, trial = condition(three["a"], "Conflicted"), condition(three["b"], "Conflicted")
    assert acting is not None
    assert trial is not None
    assert (acting.status, acting.reason, acting.message) == ("False", "NoConflict", "")
    assert (trial.status, trial.reason) == ("False", "ConflictsInEnforce")
    assert trial.message.startswith("In Enforce: spec.default.capacity differs from ")
    assert "Policy/" in trial.message
    assert all(f"/{name}," not in trial.message for name in "bc")


def test_under_the_brake_nothing_conflicts() -> None:
    """With --max-mode Audit no policy acts."""
    both = found(policy("a", default=SPOT), policy("b", default=OTHER), max_mode="Audit")
    assert not any(message_of(one, "Conflicted") for one in both.values())


def test_too_many_to_compare_is_unknown_not_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is bounded, and where it ends nothing is claimed."""
    monkeypatch.setattr(differences, "MOST_PAIRS", 3)
    some = [policy(f"p{i}", match={"podSelector": {"matchLabels": {"a": str(i)}}}, default=SPOT if i % 2 else OTHER) for i in range(6)]
    one = condition(found(*some)["p5"], "Conflicted")
    assert one is not None
    assert (one.status, one.reason) == ("Unknown", "TooManyPolicies")


def test_many_trials_leave_nothing_unknown_of_what_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are compared after what is in Enforce, and each with that alone."""
    monkeypatch.setattr(differences, "MOST_PAIRS", 3)
    trials = [
        policy(f"t{i}", mode="Audit", match={"podSelector": {"matchLabels": {"a": str(i)}}}, default=SPOT if i % 2 else OTHER)
        for i in range(6)
    ]
    acting = [policy(name, match={"podSelector": {"matchLabels": {"a": name}}}, default=SPOT) for name in ("x", "y")]
    both = found(*acting, *trials)
    statuses = {name: one.status for name in both if (one := condition(both[name], "Conflicted")) is not None}
    assert (statuses["x"], statuses["y"], statuses["t5"]) == ("False", "False", "Unknown")
