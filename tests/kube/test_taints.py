"""Taints and tolerations: when one covers another, and when one tolerates a taint or some taint of a pattern."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.taints import Taint, TolerationPattern, covers, is_tolerated, may_tolerate, passes
from policies.rules.tolerations import toleration_of

KEYS, VALUES, EFFECTS = ("a", "b"), ("", "x", "5", "10", "007", "99999999999999999999"), ("NoSchedule", "PreferNoSchedule", "NoExecute")
STANDING = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(("", *KEYS)),
        "operator": st.sampled_from(("Exists", "Equal", "", "Gt", "Lt")),
        "value": st.sampled_from(VALUES),
        "effect": st.sampled_from(("", *EFFECTS)),
        "tolerationSeconds": st.sampled_from((None, 0, 60)),
    },
)
WANTED = st.builds(
    TolerationPattern, key=st.sampled_from(KEYS), value=st.sampled_from((None, *VALUES)), effect=st.sampled_from((None, *EFFECTS))
)
MANY = ("4", "5", "6", "10", "11")
"""the values among those below that are numbers in canonical form, as content.IsDecimalInteger wants them"""
TAINTS = [{"key": key, "value": value, "effect": effect} for key in KEYS for value in {*VALUES, *MANY} for effect in EFFECTS]


def by_kubernetes(toleration: dict[str, Any], taint: dict[str, Any]) -> bool:
    """v1.Toleration.ToleratesTaint, line by line."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator, own = toleration.get("operator") or "Equal", toleration.get("value") or ""
    if operator == "Equal":
        return bool(own == taint["value"])
    if operator in ("Gt", "Lt"):
        if own not in ("5", "10") or taint["value"] not in MANY:
            return False
        return int(taint["value"]) > int(own) if operator == "Gt" else int(taint["value"]) < int(own)
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
    assert may_tolerate(standing, pattern) is any(by_kubernetes(standing, taint) for taint in described)


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


FORBID_ANY, FORBID_FIVE = TolerationPattern(key="a"), TolerationPattern(key="a", value="5")


@pytest.mark.parametrize(
    ("toleration", "anything", "five"),
    [
        ({"key": "a", "operator": "Gt", "value": "4"}, True, True),
        ({"key": "a", "operator": "Gt", "value": "5"}, True, False),
        ({"key": "a", "operator": "Lt", "value": "6"}, True, True),
        ({"key": "a", "operator": "Lt", "value": "-9223372036854775808"}, False, False),
        ({"key": "a", "operator": "Gt", "value": "9223372036854775807"}, False, False),
        ({"key": "a", "operator": "Gt", "value": "9223372036854775808"}, False, False),
        ({"key": "a", "operator": "Gt", "value": "04"}, False, False),
        ({"key": "a", "operator": "Gt"}, False, False),
        ({"key": "b", "operator": "Gt", "value": "4"}, False, False),
        ({"key": "a", "operator": "In", "value": "7"}, True, True),
        ({"operator": "In"}, True, True),
        ({"key": "b", "operator": "In"}, False, False),
    ],
    ids=str,
)
def test_ranges_and_operators_that_nobody_knows_are_forbidden_by_what_they_may_tolerate(
    toleration: dict[str, Any], *, anything: bool, five: bool
) -> None:
    """A range by the numbers in it; an operator that is none of Kubernetes' as if it tolerated every value of its key."""
    assert (may_tolerate(toleration, FORBID_ANY), may_tolerate(toleration, FORBID_FIVE)) == (anything, five)


@pytest.mark.parametrize(
    ("standing", "covered"),
    [({"operator": "Gt", "value": "4"}, True), ({"operator": "Gt", "value": "5"}, False), ({"operator": "In", "value": "5"}, False)],
    ids=str,
)
def test_a_range_covers_a_value_inside_it_and_never_exists(standing: dict[str, Any], *, covered: bool) -> None:
    """An operator that nobody knows covers nothing."""
    assert covers({"key": "a"} | standing, {"key": "a", "operator": "Equal", "value": "5"}) is covered
    assert not covers({"key": "a"} | standing, {"key": "a", "operator": "Exists"})


TAINT = Taint(key="team", value="5", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "team", "value": "5"}, True),
        ({"key": "team", "operator": "Equal", "value": "6"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "team", "operator": "Gt", "value": "4"}, True),
        ({"key": "team", "operator": "Lt", "value": "4"}, False),
        ({"key": "team", "operator": "Gt", "value": "04"}, False),
        ({"key": "team", "operator": "Near", "value": "5"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], *, expected: bool) -> None:
    """Key, effect and value, or a bound on the taint's value."""
    assert is_tolerated(TAINT, [toleration]) is expected


def test_taints_that_tell_a_state_pass() -> None:
    """Of Kubernetes, Karpenter and agents, and those that a NodePool has at the start alone."""
    assert all(map(passes, ("node.kubernetes.io/not-ready", "karpenter.sh/disrupted", "ebs.csi.aws.com/agent-not-ready")))
    assert not passes("nvidia.com/gpu")
    assert passes("nvidia.com/gpu", ("nvidia.com/gpu",))
