"""Defaults outside what others require or allow."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.conditions.found import found, message_of, namespace, own, policy, template


@pytest.mark.parametrize(
    ("default", "require", "text"),
    [
        (
            {"families": {"in": ["ampere", "hopper"]}},
            {"families": {"in": ["hopper"]}},
            "spec.default.families in [ampere, hopper] is clipped by ClusterGPUPolicy/guard (families in [hopper])",
        ),
        (
            {"capacity": ["spot"]},
            {"capacity": ["on-demand"]},
            "spec.default.capacity [spot] has no effect: it is outside the requirements of ClusterGPUPolicy/guard (capacity [on-demand])",
        ),
        (
            {"longRuns": {"over": "1h", "capacity": ["spot", "on-demand"]}},
            {"capacity": ["on-demand"]},
            "spec.default.longRuns [spot, on-demand] is clipped by ClusterGPUPolicy/guard (capacity [on-demand])",
        ),
        ({"gracePeriod": "2h"}, {"gracePeriod": {"max": "1h"}}, "spec.default.gracePeriod 2h is clipped to 1h by ClusterGPUPolicy/guard"),
        (
            {"gracePeriod": "2m"},
            {"gracePeriod": {"min": "10m"}},
            "spec.default.gracePeriod 2m is raised to 10m, which is required by ClusterGPUPolicy/guard",
        ),
        ({"maxRuntime": "24h"}, {"maxRuntime": "2h"}, "spec.default.maxRuntime 24h is clipped to 2h by ClusterGPUPolicy/guard"),
        (
            {"protectFor": "Always"},
            {"protection": {"max": "24h"}},
            "spec.default.protectFor Always is clipped to 24h by ClusterGPUPolicy/guard",
        ),
        (
            {"tolerate": [{"key": "team", "value": "x"}]},
            {"tolerations": {"forbid": [{"key": "team"}]}},
            "spec.default.tolerate team=x is not added: it is forbidden by ClusterGPUPolicy/guard",
        ),
        (
            {"mig": {"slice": "10gb"}},
            {"sharing": ["Exclusive"]},
            "spec.default.mig slice 10gb has no effect: other sharing is required by ClusterGPUPolicy/guard",
        ),
        (
            {"nodeTemplate": "t"},
            {"families": {"in": ["hopper"]}},
            "spec.default.nodeTemplate t has no effect: its nodes do not meet the requirements of ClusterGPUPolicy/guard",
        ),
        (
            {"nodeTemplate": "tainted"},
            {"tolerations": {"forbid": [{"key": "pool"}]}},
            "spec.default.nodeTemplate tainted has no effect: its taint is forbidden by ClusterGPUPolicy/guard",
        ),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_what_is_clipped_by_whom_to_what(default: dict[str, Any], require: dict[str, Any], text: str) -> None:
    """In one sentence, on the policy whose default it is, and not on the other."""
    templates = template("t"), template("tainted", taints=[{"key": "pool", "value": "x", "effect": "NoSchedule"}])
    both = found(policy("p", default=default), policy("guard", require=require), *templates)
    assert message_of(both["p"], "Clipped") == text
    assert not message_of(both["guard"], "Clipped")


@pytest.mark.parametrize(
    ("default", "require"),
    [
        ({"families": {"in": ["hopper"]}}, {"families": {"in": ["ampere", "hopper"]}}),
        ({"families": {"notIn": ["volta"]}}, {"families": {"in": ["ampere", "hopper"]}}),
        ({"gracePeriod": "1h"}, {"gracePeriod": {"min": "1h", "max": "1h"}}),
        ({"protectFor": "12h"}, {"protection": {"max": "24h"}}),
        ({"tolerate": [{"key": "team", "value": "x"}]}, {"tolerations": {"forbid": [{"key": "team", "value": "y"}]}}),
        ({"mig": {"slice": "10gb"}}, {"sharing": ["MIG", "Exclusive"]}),
        ({"nodeTemplate": "t"}, {"families": {"in": ["ampere"]}}),
    ],
    ids=str,
)
def test_what_is_inside_is_not_clipped(default: dict[str, Any], require: dict[str, Any]) -> None:
    """Nor what only says what is not wanted."""
    assert not message_of(found(policy("p", default=default), policy("guard", require=require), template("t"))["p"], "Clipped")


def test_a_team_brings_in_only_what_the_cluster_allows() -> None:
    """Tolerations and templates, in the namespaces and for the pods that the grant is for."""
    mine = own("own", "ml", default={"tolerate": [{"key": "team", "value": "x"}], "nodeTemplate": "t"})
    assert message_of(found(mine, template("t"))["own"], "Clipped") == (
        "spec.default.tolerate team=x is not added: no ClusterGPUPolicy allows it here (allow.tolerations); "
        "spec.default.nodeTemplate t has no effect: no ClusterGPUPolicy allows it here (allow.nodeTemplates)"
    )
    grant = {"allow": {"tolerations": [{"key": "team"}], "nodeTemplates": ["t"]}}
    assert not message_of(found(mine, template("t"), policy("g", **grant))["own"], "Clipped")
    elsewhere = policy("g", match={"namespaceSelector": {"matchLabels": {"team": "x"}}}, **grant)
    assert message_of(found(mine, template("t"), elsewhere, namespace("ml"), namespace("web", team="x"))["own"], "Clipped")


def test_the_tightest_limit_is_named() -> None:
    """Of several; and of those that are equal, all."""
    limits = [policy(name, require={"gracePeriod": {"max": most}}) for name, most in (("a", "2h"), ("b", "1h"), ("c", "60m"))]
    text = message_of(found(policy("p", default={"gracePeriod": "3h"}), *limits)["p"], "Clipped")
    assert text == "spec.default.gracePeriod 3h is clipped to 1h by ClusterGPUPolicy/b and ClusterGPUPolicy/c"


def test_only_what_is_enforced_clips() -> None:
    """And only for pods that both can match."""
    mine = policy("p", default={"gracePeriod": "2h"}, match={"gpus": {"min": 4}})
    require = {"gracePeriod": {"max": "1h"}}
    assert not message_of(found(mine, policy("g", mode="Audit", require=require))["p"], "Clipped")
    assert not message_of(found(mine, policy("g", match={"gpus": {"max": 3}}, require=require))["p"], "Clipped")
    assert message_of(found(policy("p", mode="Audit", default={"gracePeriod": "2h"}, require=require))["p"], "Clipped")


def test_a_team_clips_its_own_defaults_and_not_the_clusters() -> None:
    """The status of a policy of the cluster is nobody's in a namespace."""
    both = found(
        policy("p", default={"gracePeriod": "2h"}), own("own", "ml", require={"gracePeriod": {"max": "1h"}}, default={"gracePeriod": "2h"})
    )
    assert not message_of(both["p"], "Clipped")
    assert "GPUPolicy/ml/own" in message_of(both["own"], "Clipped")


def test_a_priority_class_that_nobody_allows() -> None:
    """A namespace's own default needs a grant of the cluster's policies."""
    mine = own("mine", "ml", default={"priorityClass": "urgent"})
    wanted = "spec.default.priorityClass urgent has no effect: no ClusterGPUPolicy allows it here (allow.priorityClasses)"
    assert wanted in str(found(mine)["mine"])
    assert wanted not in str(found(mine, policy("grant", allow={"priorityClasses": ["urgent"]}))["mine"])
