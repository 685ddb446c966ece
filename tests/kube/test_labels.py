"""Label expressions and selectors, as Kubernetes reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.labels import ABSENT, ANY, NEW, Expression, LabelSelector, Possible

VALUES = st.sampled_from(["", "a", "b", "5", "-3", "05", "+5"])
KNOWN = frozenset({"a", "b", "10"})


def _expression(operator: str, *values: str, key: str = "k") -> Expression:
    return Expression(key, operator, values)


@given(st.dictionaries(st.sampled_from("kl"), VALUES), st.lists(VALUES, min_size=1, max_size=3))
def test_each_operator_has_an_opposite(labels: dict[str, str], values: list[str]) -> None:
    """In and NotIn, Exists and DoesNotExist: of each pair one holds of any labels."""
    assert _expression("In", *values).holds(labels) != _expression("NotIn", *values).holds(labels)
    assert _expression("Exists").holds(labels) != _expression("DoesNotExist").holds(labels)


@pytest.mark.parametrize(
    ("label", "operator", "bound", "expected"),
    [("5", "Gt", "4", True), ("+5", "Gt", "4", True), ("4", "Lt", "4", False), ("a", "Lt", "4", False), ("1_0", "Gt", "4", False)],
)
def test_bounds_compare_whole_numbers(label: str, operator: str, bound: str, *, expected: bool) -> None:
    """As Go reads them; what is none is outside of each bound."""
    assert _expression(operator, bound).holds({"k": label}) is expected


def test_unknown_operators_and_two_bounds_hold_never() -> None:
    """The scheduler cannot read such a term, and it matches no node."""
    assert not _expression("Near", "a").holds({"k": "a"})
    assert not _expression("Gt", "1", "2").holds({"k": "5"})


def test_fields_know_the_name_alone() -> None:
    """matchFields has one field, and one value."""
    assert _expression("In", "n1", key="metadata.name").holds_name("n1")
    assert _expression("NotIn", "n1", key="metadata.name").holds_name("n2")
    assert not _expression("In", "n1", "n2", key="metadata.name").holds_name("n1")
    assert not _expression("In", "n1", key="spec.unschedulable").holds_name("n1")
    assert not _expression("Exists", "n1", key="metadata.name").holds_name("n1")


@pytest.mark.parametrize(
    ("possible", "operator", "values", "expected"),
    [
        (("a",), "In", ["a"], True), (("a",), "In", ["b"], False), (ABSENT, "In", ["a"], False), (ANY, "In", ["a"], True),
        (NEW, "In", ["a"], False), (NEW, "In", ["x"], True), (("a", None), "In", ["a"], True),
        (("a",), "NotIn", ["a"], False), (("a",), "NotIn", ["b"], True), (ABSENT, "NotIn", ["a"], True), (NEW, "NotIn", ["x"], True),
        (("a", "b"), "NotIn", ["a"], True), (("a", "b"), "NotIn", ["a", "b"], False),
        (("a",), "Exists", [], True), (ABSENT, "Exists", [], False), (("a", None), "Exists", [], True), (ANY, "Exists", [], True),
        (ABSENT, "DoesNotExist", [], True), (("a",), "DoesNotExist", [], False), (("a", None), "DoesNotExist", [], True),
        (("10",), "Gt", ["9"], True), (("10",), "Gt", ["10"], False), (("10",), "Lt", ["11"], True), (("10",), "Lt", ["10"], False),
        (("a",), "Gt", ["9"], False), (("10",), "Gt", [], False), (("10",), "Gt", ["x"], False), (ABSENT, "Gt", ["1"], False),
        (NEW, "Gt", ["1"], True), (ANY, "Lt", ["1"], True), (("a",), "Near", ["a"], False),
    ],
    ids=str,
)  # fmt: skip
def test_an_expression_matches_what_a_label_may_be(possible: Possible, operator: str, values: list[str], *, expected: bool) -> None:
    """As kube-scheduler: a missing key satisfies NotIn and DoesNotExist; of several possible values one is enough."""
    assert Expression("k", operator, tuple(values)).may_hold(possible, KNOWN) is expected


LABELS = {"team": "research", "tier": ""}


@pytest.mark.parametrize(
    ("key", "operator", "values", "holds"),
    [
        ("team", "In", ("research", "ops"), True),
        ("team", "In", ("ops",), False),
        ("zone", "In", ("a",), False),
        ("team", "NotIn", ("ops",), True),
        ("team", "NotIn", ("research",), False),
        ("zone", "NotIn", ("a",), True),
        ("tier", "Exists", (), True),
        ("zone", "Exists", (), False),
        ("zone", "DoesNotExist", (), True),
        ("tier", "DoesNotExist", (), False),
    ],
)
def test_expression(key: str, operator: str, values: tuple[str, ...], *, holds: bool) -> None:
    """Each operator holds as in apimachinery: a missing key satisfies NotIn and DoesNotExist."""
    expression = Expression(key=key, operator=operator, values=values)
    assert LabelSelector(match_expressions=(expression,)).matches(LABELS) is holds


def test_empty_selector_matches_everything() -> None:
    """A selector that says nothing picks all."""
    assert LabelSelector().matches({})


def test_labels_and_expressions_must_all_hold() -> None:
    """One part that does not hold is enough to leave an object out."""
    exists = Expression(key="tier", operator="Exists")
    assert LabelSelector(match_labels=(("team", "research"),), match_expressions=(exists,)).matches(LABELS)
    assert not LabelSelector(match_labels=(("team", "ops"),), match_expressions=(exists,)).matches(LABELS)
    assert not LabelSelector(match_labels=(("zone", "a"),)).matches(LABELS)
