"""Statuses in words."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.conditions import words
from analysis.conditions.words import list_names, sentences
from tests.analysis.conditions.found import found, own, policy, template

EVERYTHING: dict[str, Any] = {
    "require": {
        "families": {"in": ["hopper"]}, "longRuns": {"over": "2h", "capacity": ["on-demand"]}, "gpusPerPod": {"max": 8, "oneOf": [1, 8]},
        "requestsEqualLimits": ["accelerators"], "gracePeriod": {"min": "10m", "max": "1h"}, "protection": {"max": "24h"},
        "tolerations": {"forbid": [{"key": "team", "value": "x"}]},
    },
    "default": {
        "acceleratorTaints": "Tolerate", "nodeTemplate": "t", "mig": {"usableMemory": "9.5Gi"}, "capacity": ["spot"],
        "longRuns": {"over": "90m", "capacity": ["on-demand"]}, "gracePeriod": "30m", "protectFor": "Always",
        "tolerate": [{"key": "a", "effect": "NoSchedule"}], "repair": ["accelerators"],
    },
    "allow": {"nodeTemplates": ["t"], "tolerations": [{"key": "team"}]},
}  # fmt: skip


def test_a_line_is_short() -> None:
    """Columns of kubectl have room for a few words: lists and lines end, and show that they do."""
    what = found(policy("p", **EVERYTHING), template("t"))["p"].what
    assert len(what) == words.MOST_LINE
    assert what.endswith("...")
    taken = [{"key": key} for key in ("a", "b", "c", "d", "e")]
    assert found(policy("p", default={"tolerate": taken}))["p"].what == "default tolerate [a, b, c and 2 more]"


def test_all_that_a_policy_does_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every field, in the order of the reference."""
    monkeypatch.setattr(words, "MOST_LINE", 1000)
    assert found(policy("p", **EVERYTHING), template("t"))["p"].what == (
        "require families in [hopper], longRuns over 2h capacity [on-demand], gpusPerPod max 8 oneOf [1, 8], "
        "requestsEqualLimits [accelerators], gracePeriod min 10m max 1h, protection max 24h, tolerations forbid [team=x]; "
        "default acceleratorTaints, nodeTemplate t, capacity [spot], longRuns over 1h30m capacity [on-demand], mig usableMemory 9728Mi, "
        "gracePeriod 30m, protectFor Always, tolerate [a:NoSchedule], repair [accelerators]; allow nodeTemplates [t], tolerations [team]"
    )


@pytest.mark.parametrize(
    ("match", "where"),
    [
        ({}, "all namespaces"),
        ({"namespaceSelector": {}}, "all namespaces"),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ml"}}}, "1 namespace with kubernetes.io/metadata.name=ml"),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["dev"]}]}},
            "2 namespaces with env notin (dev)",
        ),
        ({"gpus": {"min": 1, "max": 1}, "workloads": ["Job"]}, "all namespaces; pods of Job that ask for 1 GPU"),
        ({"gpus": {"min": 2, "max": 4}}, "all namespaces; pods that ask for at least 2 GPUs and at most 4 GPUs"),
        ({"podSelector": {"matchLabels": {"a": "b"}}, "gpus": {"max": 3}}, "all namespaces; pods labelled a=b that ask for at most 3 GPUs"),
    ],
    ids=str,
)
def test_where_a_policy_acts_is_said(match: dict[str, Any], where: str) -> None:
    """And how many namespaces that is now."""
    assert found(policy("p", match=match, default={"gracePeriod": "2m"}))["p"].where == where
    assert found(own("p", "ml", default={"gracePeriod": "2m"}))["p"].where == "this namespace"


def test_a_policy_that_does_nothing_says_so() -> None:
    """Rather than an empty column."""
    assert found(policy("p"))["p"].what == "nothing"


def test_lines_are_bounded() -> None:
    """Whatever is written."""
    values = [f"value-{i}-{'x' * 40}" for i in range(200)]
    match = {"namespaceSelector": {"matchExpressions": [{"key": "env", "operator": "In", "values": values}]}, "gpus": {"min": 1}}
    finding = found(policy("p", match=match, allow={"nodeTemplates": [f"template-{i}-{'y' * 40}" for i in range(200)]}))["p"]
    assert len(finding.where) <= 500
    assert len(finding.what) <= 500


@pytest.mark.parametrize(("count", "text"), [(1, "a"), (2, "a and b"), (5, "a, b, c, d and e"), (7, "a, b, c, d, e and 2 more")])
def test_five_are_named(count: int, text: str) -> None:
    """And the rest counted."""
    assert list_names("abcdefg"[:count], count) == text


def test_the_first_sentence_is_always_there() -> None:
    """Cut where it alone is too long."""
    assert sentences(["a" * 100, "b"], "END", most=60) == f"{'a' * 30}...; and 1 more. END"
    assert sentences([], "END") == "END"
    assert sentences(["a", "b"]) == "a; b"
