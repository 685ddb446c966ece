"""The difference of two trees, applied by another's implementation of RFC 6902."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.patch.tree_diff import operations
from tests.support.generators.strategies import examples

KEYS = st.sampled_from(["a", "b", "c/d", "e~f", ""])
TREES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.text("xy", max_size=1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, TREES, max_size=4), st.dictionaries(KEYS, TREES, max_size=4))
@examples(300, 20_000)
def test_it_turns_one_tree_into_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Applied to the first it gives the second, in types too; of two that are the same there is none."""
    found = list(operations(before, after, whole=("a", "b")))
    assert repr_of(jsonpatch.apply_patch(before, found)) == repr_of(after)
    assert bool(found) == (repr_of(before) != repr_of(after))


def repr_of(value: Any) -> str:
    """The value as text, in which True is not 1 and the order of keys says nothing."""
    if isinstance(value, dict):
        return f"{{{','.join(f'{key!r}:{repr_of(one)}' for key, one in sorted(value.items()))}}}"
    return f"[{','.join(map(repr_of, value))}]" if isinstance(value, list) else repr(value)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({}, {"m": {"a": "1", "b": "2"}}, [{"op": "add", "path": "/m", "value": {"a": "1", "b": "2"}}]),
        ({"l": [1]}, {"l": [1, 2, 3]}, [{"op": "add", "path": "/l/-", "value": 2}, {"op": "add", "path": "/l/-", "value": 3}]),
        ({"l": [{"k": 1}]}, {"l": [{"k": 2}]}, [{"op": "replace", "path": "/l/0/k", "value": 2}]),
        ({"l": [1, 2]}, {"l": [2]}, [{"op": "replace", "path": "/l", "value": [2]}]),
        ({"a": 1}, {}, [{"op": "remove", "path": "/a"}]),
    ],
)
def test_each_place_is_one_operation(before: Any, after: Any, found: list[dict[str, Any]]) -> None:
    """The smallest that is different."""
    assert list(operations(before, after)) == found


def test_a_list_that_is_whole_is_replaced_where_that_is_shorter() -> None:
    """Terms of an affinity are written anew rather than letter by letter; of a list that is known in part each item is changed."""
    before = {"terms": [{"key": f"k{n}", "values": ["a", "b"]} for n in range(3)]}
    after = {"terms": [{"key": f"other{n}", "values": ["c", "d"]} for n in range(3)]}
    assert [one["path"] for one in operations(before, after, whole=("terms",))] == ["/terms"]
    assert len(list(operations(before, after))) == 9
    longer = {"terms": [*before["terms"], {"key": "k3"}]}
    assert [one["path"] for one in operations(before, longer, whole=("terms",))] == ["/terms/-"]


def test_what_is_removed_comes_in_the_order_of_the_tree() -> None:
    """In every process: a report that says the same must be the same text."""
    assert [one["path"] for one in operations({"b": 1, "a": 1, "c": 1, "d": 1}, {})] == ["/b", "/a", "/c", "/d"]
