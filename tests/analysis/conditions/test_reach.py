"""Where policies act, and whether two can meet."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.conditions.reach import NamespaceIndex, may_meet
from kube.labels import Expression, LabelSelector
from policies.policy import Match
from tests.analysis.conditions.found import key, namespace, new_updater
from tests.support.counts import count

KEYS, VALUES = ("a", "b"), ("x", "y", "z")
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
EXPRESSIONS = st.one_of(
    st.builds(
        Expression,
        key=st.sampled_from(KEYS),
        operator=st.sampled_from(["In", "NotIn"]),
        values=st.lists(st.sampled_from(VALUES), min_size=1, max_size=2).map(tuple),
    ),
    st.builds(Expression, key=st.sampled_from(KEYS), operator=st.sampled_from(["Exists", "DoesNotExist"])),
)
SELECTORS = st.builds(
    LabelSelector,
    match_labels=LABELS.map(lambda labels: tuple(labels.items())),
    match_expressions=st.lists(EXPRESSIONS, max_size=2).map(tuple),
)
EVERY = [{k: v for k, v in (("a", a), ("b", b)) if v} for a in ("", *VALUES, "other") for b in ("", *VALUES, "other")]
"""labels of one pod: all that these selectors can tell apart"""


@given(one=SELECTORS, other=SELECTORS)
def test_selectors_meet_where_some_labels_satisfy_both(one: LabelSelector, other: LabelSelector) -> None:
    """As it is when every set of labels is tried."""
    wanted = any(one.matches(labels) and other.matches(labels) for labels in EVERY)
    if any(all(one.matches(labels) is False for labels in EVERY) for one in (one, other)):
        return  # one that nothing satisfies
    assert may_meet(Match(pod_selector=one), Match(pod_selector=other)) == wanted


@given(selector=SELECTORS, labels=st.lists(LABELS, max_size=count(8, 40)))
def test_sets_of_namespaces_are_those_that_the_selector_matches(selector: LabelSelector, labels: list[dict[str, str]]) -> None:
    """One by one or all at once."""
    spaces = {f"n{i:02}": one for i, one in enumerate(labels)}
    objects: list[dict[str, Any]] = [namespace(name, **one) for name, one in spaces.items()]
    namespaces = NamespaceIndex(new_updater().apply({key(one): one for one in objects}).snapshot)
    list(namespaces.steps())
    picked = namespaces.picked(selector)
    assert [name for name in namespaces.names if picked & namespaces.bit[name]] == [n for n, one in spaces.items() if selector.matches(one)]
    assert not picked or namespaces.first(picked) == next(n for n, one in spaces.items() if selector.matches(one))


@pytest.mark.parametrize("selector", [None, LabelSelector()])
def test_no_selector_is_every_namespace(selector: LabelSelector | None) -> None:
    """And an empty one too."""
    namespaces = NamespaceIndex(new_updater().apply({key(one): one for one in (namespace("a"), namespace("b"))}).snapshot)
    list(namespaces.steps())
    assert namespaces.picked(selector) == namespaces.all == 3
