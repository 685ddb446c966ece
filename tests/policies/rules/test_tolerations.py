"""Tolerations: when one covers another, when one tolerates a forbidden taint, and how one is written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.policy import TolerationPattern
from policies.rules.tolerations import covers, tolerates, toleration_of

KEYS, VALUES, EFFECTS = ("a", "b"), ("", "x", "y"), ("NoSchedule", "PreferNoSchedule", "NoExecute")
STANDING = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(("", *KEYS)),
        "operator": st.sampled_from(("Exists", "Equal", "")),
        "value": st.sampled_from(VALUES),
        "effect": st.sampled_from(("", *EFFECTS)),
        "tolerationSeconds": st.sampled_from((None, 0, 60)),
    },
)
WANTED = st.builds(
    TolerationPattern, key=st.sampled_from(KEYS), value=st.sampled_from((None, *VALUES)), effect=st.sampled_from((None, *EFFECTS))
)
TAINTS = [{"key": key, "value": value, "effect": effect} for key in KEYS for value in VALUES for effect in EFFECTS]


def by_kubernetes(toleration: dict[str, Any], taint: dict[str, Any]) -> bool:
    """v1.Toleration.ToleratesTaint, line by line."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return bool(toleration.get("key")) and (toleration.get("value") or "") == taint["value"]
    return operator == "Exists"


@given(STANDING, WANTED)
def test_what_covers_tolerates_every_taint_that_the_other_does(standing: dict[str, Any], pattern: TolerationPattern) -> None:
    """Else a pod would be kept off nodes that the policy opens to it."""
    wanted = toleration_of(pattern)
    if covers(standing, wanted):
        assert standing.get("tolerationSeconds") is None
        assert all(by_kubernetes(standing, taint) for taint in TAINTS if by_kubernetes(wanted, taint))


@given(STANDING, WANTED)
def test_a_toleration_is_forbidden_where_it_tolerates_a_taint_of_the_pattern(standing: dict[str, Any], pattern: TolerationPattern) -> None:
    """Any taint that the pattern describes: an unset value or effect means any."""
    described = [
        t for t in TAINTS if t["key"] == pattern.key and pattern.value in (None, t["value"]) and pattern.effect in (None, t["effect"])
    ]
    assert tolerates(standing, pattern) is any(by_kubernetes(standing, taint) for taint in described)


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        ({"key": "a"}, {"key": "a", "operator": "Exists"}),
        ({"key": "a", "effect": "NoExecute"}, {"key": "a", "operator": "Exists", "effect": "NoExecute"}),
        ({"key": "a", "value": ""}, {"key": "a", "operator": "Equal", "value": ""}),
        ({"key": "a", "value": "x", "effect": "NoSchedule"}, {"key": "a", "operator": "Equal", "value": "x", "effect": "NoSchedule"}),
    ],
    ids=str,
)
def test_a_toleration_is_written_as_kubernetes_does(pattern: Any, written: dict[str, Any]) -> None:
    """An empty value is a value."""
    assert toleration_of(TolerationPattern(**pattern)) == written
