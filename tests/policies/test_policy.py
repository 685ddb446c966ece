"""policies.policy: label selectors, and how policies are named."""

from __future__ import annotations

import pytest

from policies.label_selector import LabelExpression, LabelSelector
from policies.policy import Policy

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
    expression = LabelExpression(key=key, operator=operator, values=values)  # type: ignore[arg-type]
    assert LabelSelector(match_expressions=(expression,)).matches(LABELS) is holds


def test_empty_selector_matches_everything() -> None:
    """A selector that says nothing picks all."""
    assert LabelSelector().matches({})


def test_labels_and_expressions_must_all_hold() -> None:
    """One part that does not hold is enough to leave an object out."""
    exists = LabelExpression(key="tier", operator="Exists")
    assert LabelSelector(match_labels=(("team", "research"),), match_expressions=(exists,)).matches(LABELS)
    assert not LabelSelector(match_labels=(("team", "ops"),), match_expressions=(exists,)).matches(LABELS)
    assert not LabelSelector(match_labels=(("zone", "a"),)).matches(LABELS)


def test_id_names_kind_and_namespace() -> None:
    """A policy is named in messages by kind, namespace and name."""
    assert Policy(name="a").id == "ClusterGPUPolicy/a"
    assert Policy(name="a", namespace="ml").id == "GPUPolicy/ml/a"
