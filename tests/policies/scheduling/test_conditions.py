"""Taints and labels, one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.taints import Taint
from policies.facts.places import passes
from policies.scheduling.conditions import holds, names, tolerates
from policies.scheduling.wants import LabelRequirement

VALUES = st.sampled_from(["", "a", "b", "5", "-3", "05", "+5"])
TAINT = Taint(key="team", value="5", effect="NoSchedule")


def _expression(operator: str, *values: str, key: str = "k") -> LabelRequirement:
    return LabelRequirement(key, operator, values, ())


@given(st.dictionaries(st.sampled_from("kl"), VALUES), st.lists(VALUES, min_size=1, max_size=3))
def test_each_operator_has_an_opposite(labels: dict[str, str], values: list[str]) -> None:
    """In and NotIn, Exists and DoesNotExist: of each pair one holds of any labels."""
    assert holds(_expression("In", *values), labels) != holds(_expression("NotIn", *values), labels)
    assert holds(_expression("Exists"), labels) != holds(_expression("DoesNotExist"), labels)


@pytest.mark.parametrize(
    ("label", "operator", "bound", "expected"),
    [("5", "Gt", "4", True), ("+5", "Gt", "4", True), ("4", "Lt", "4", False), ("a", "Lt", "4", False), ("1_0", "Gt", "4", False)],
)
def test_bounds_compare_whole_numbers(label: str, operator: str, bound: str, *, expected: bool) -> None:
    """As Go reads them; what is none is outside of each bound."""
    assert holds(_expression(operator, bound), {"k": label}) is expected


def test_unknown_operators_and_two_bounds_hold_never() -> None:
    """The scheduler cannot read such a term, and it matches no node."""
    assert not holds(_expression("Near", "a"), {"k": "a"})
    assert not holds(_expression("Gt", "1", "2"), {"k": "5"})


def test_fields_know_the_name_alone() -> None:
    """matchFields has one field, and one value."""
    assert names(_expression("In", "n1", key="metadata.name"), "n1")
    assert names(_expression("NotIn", "n1", key="metadata.name"), "n2")
    assert not names(_expression("In", "n1", "n2", key="metadata.name"), "n1")
    assert not names(_expression("In", "n1", key="spec.unschedulable"), "n1")
    assert not names(_expression("Exists", "n1", key="metadata.name"), "n1")


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
    assert tolerates((toleration,), TAINT) is expected


def test_taints_that_tell_a_state_pass() -> None:
    """Of Kubernetes, Karpenter and agents, and those that a NodePool has at the start alone."""
    assert all(map(passes, ("node.kubernetes.io/not-ready", "karpenter.sh/disrupted", "ebs.csi.aws.com/agent-not-ready")))
    assert not passes("nvidia.com/gpu")
    assert passes("nvidia.com/gpu", ("nvidia.com/gpu",))
