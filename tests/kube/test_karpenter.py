"""Requirements as sets of values, held against every value of a small world."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.karpenter import Requirement, requirement

WORLD = ("a", "b", "1", "2", "3", "7")
SETS = st.sampled_from(
    [
        made
        for operator, values in (
            ("In", ("a", "1")),
            ("In", ("2", "3")),
            ("In", ("b",)),
            ("NotIn", ("a",)),
            ("NotIn", ("1", "2", "3")),
            ("Exists", ()),
            ("DoesNotExist", ()),
            ("Gt", ("1",)),
            ("Lt", ("3",)),
            ("Gte", ("7",)),
            ("Lte", ("1",)),
        )
        if (made := requirement(operator, values)) is not None
    ]
)


def _has(one: Requirement, value: str) -> bool:
    return not (one & Requirement(frozenset({value}))).none


@given(SETS, SETS)
def test_both_admit_what_each_admits(one: Requirement, other: Requirement) -> None:
    """And is the intersection, in any order."""
    for value in WORLD:
        assert _has(one & other, value) == (_has(one, value) and _has(other, value)) == _has(other & one, value)


@given(SETS, SETS)
def test_a_common_value_is_enough(one: Requirement, other: Requirement) -> None:
    """A pod agrees with a NodePool where some value is left to both."""
    if any(_has(one, value) and _has(other, value) for value in WORLD):
        assert one.meets(other)


def test_what_denies_agrees_with_what_denies() -> None:
    """A node without the label satisfies both NotIn and DoesNotExist."""
    absent, other = Requirement(), Requirement(frozenset({"a"}), complement=True)
    assert absent.meets(other)
    assert other.meets(absent)
    assert not absent.meets(Requirement(complement=True))


def test_what_cannot_be_read_is_none() -> None:
    """An unknown operator, and a bound that is no number."""
    assert requirement("Near", ("a",)) is None
    assert requirement("Gt", ("a",)) is None
    assert requirement("Gt", ()) is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (("In", "a", "b"), ("NotIn", "a"), True),
        (("In", "a"), ("NotIn", "a"), False),
        (("NotIn", "a"), ("In", "a", "b"), True),
        (("NotIn", "a"), ("NotIn", "b"), True),
        (("Gt", "5"), ("In", "6"), True),
        (("Gte", "5"), ("In", "5"), True),
        (("Gt", "5"), ("In", "5", "x"), False),
        (("Lte", "5"), ("In", "6"), False),
        (("Lt", "5"), ("In", "4"), True),
        (("Gt", "5"), ("Lt", "5"), False),
        (("Exists",), ("DoesNotExist",), False),
    ],
)
def test_pairs(one: tuple[str, ...], other: tuple[str, ...], *, expected: bool) -> None:
    """As Karpenter's own tests have them."""
    first, second = requirement(one[0], one[1:]), requirement(other[0], other[1:])
    assert first is not None
    assert second is not None
    assert first.meets(second) is expected
