"""Label expressions of what a label may be; of what it is they are compared with the code of Kubernetes in tests/kube/upstream."""

from __future__ import annotations

import pytest

from kube.labels import ABSENT, ANY, NEW, Expression, Possible

KNOWN = frozenset({"a", "b", "10"})


def test_fields_know_the_name_alone() -> None:
    """The API server denies another one."""
    assert not Expression("spec.unschedulable", "In", ("n1",)).holds_name("n1")


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
