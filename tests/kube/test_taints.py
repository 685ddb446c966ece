"""Taints and tolerations: when one covers another, and when one tolerates some taint of a pattern. That ``is_tolerated`` is what
Kubernetes computes is shown in tests/kube/upstream."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.taints import EFFECTS, Taint, TolerationPattern, covers, is_tolerated, may_tolerate, passes
from policies.rules.tolerations import toleration_of

KEYS, VALUES = ("a", "b"), ("", "x", "5", "10", "007", "99999999999999999999")
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
TAINTS = [Taint(key=key, value=value, effect=effect) for key in KEYS for value in (*VALUES, "4", "6", "11") for effect in EFFECTS]


@given(STANDING, WANTED)
def test_what_covers_tolerates_every_taint_that_the_other_does(standing: dict[str, Any], pattern: TolerationPattern) -> None:
    """Else a pod would be kept off nodes that the policy opens to it."""
    wanted = toleration_of(pattern)
    if covers(standing, wanted):
        assert standing.get("tolerationSeconds") is None
        assert all(is_tolerated(taint, [standing]) for taint in TAINTS if is_tolerated(taint, [wanted]))


@given(STANDING, WANTED)
def test_a_toleration_is_forbidden_where_it_tolerates_a_taint_of_the_pattern(standing: dict[str, Any], pattern: TolerationPattern) -> None:
    """Any taint that the pattern describes: an unset value or effect means any."""
    assert may_tolerate(standing, pattern) is any(is_tolerated(taint, [standing]) for taint in TAINTS if pattern.matches(taint))


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


def test_taints_that_tell_a_state_pass() -> None:
    """Of Kubernetes, Karpenter and agents, and those that a NodePool has at the start alone."""
    assert all(map(passes, ("node.kubernetes.io/not-ready", "karpenter.sh/disrupted", "ebs.csi.aws.com/agent-not-ready")))
    assert not passes("nvidia.com/gpu")
    assert passes("nvidia.com/gpu", ("nvidia.com/gpu",))
