"""Changes to trees that share what they leave alone; patches are compared with the API server's code in tests/kube/upstream."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.tree import Path, TreePatch, diff, dotted, map_at, maps_in, path_of, pointer, remove_at, set_at, text_of, value_at
from policies.patch.record import digest, digest_at
from policies.verdict import Edit
from tests.support.generators.strategies import examples

POD: dict[str, Any] = {
    "metadata": {"annotations": {"a/b": "1"}},
    "spec": {"containers": [{"name": "c"}, {"name": "d"}], "tolerations": None},
}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("spec", "require", "families", "in", 0), "spec.require.families.in[0]"),
        (("spec", "containers", 0, "resources", "limits", "nvidia.com/gpu"), 'spec.containers[0].resources.limits["nvidia.com/gpu"]'),
        (("labels", "8gpu"), 'labels["8gpu"]'),
        (("tolerations", "-"), 'tolerations["-"]'),
        (("a-b", "_c"), "a-b._c"),
        ((0, "a"), "[0].a"),
        ((), ""),
    ],
)
def test_a_path_reads_as_one_would_type_it(path: Path, text: str) -> None:
    """A key with dots, slashes or a first digit is quoted, as yq wants it."""
    assert dotted(path) == text


def test_what_is_not_on_the_way_is_shared() -> None:
    """Only the maps and lists from the root to the change are new."""
    after = set_at(POD, ("spec", "containers", 0, "image"), "x")
    assert after["metadata"] is POD["metadata"]
    assert after["spec"]["containers"][1] is POD["spec"]["containers"][1]
    assert "image" not in POD["spec"]["containers"][0]


def test_missing_and_null_parents_are_made() -> None:
    """A list where an index or - follows, else a map."""
    after = set_at(set_at(POD, ("spec", "tolerations", "-"), "t"), ("spec", "affinity", "nodeAffinity", "terms", 0, "x"), 1)
    assert after["spec"]["tolerations"] == ["t"]
    assert after["spec"]["affinity"] == {"nodeAffinity": {"terms": [{"x": 1}]}}


def test_removing_nothing_changes_nothing() -> None:
    """The same object comes back."""
    for path in (("spec", "no"), ("no", "way"), ("spec", "containers", 7), ("spec", "tolerations", "x")):
        assert remove_at(POD, path) is POD


def test_values_and_pointers_tell_indexes_from_keys() -> None:
    """A number is an index only where a list stands."""
    assert value_at(POD, ("spec", "containers", 1, "name")) == "d"
    assert value_at(POD, ("spec", "containers", 9)) is None
    assert path_of({"0": [{"a": 1}]}, "/0/0/a") == ("0", 0, "a")


@pytest.mark.parametrize("thing", [None, [], "x", 1, {"a": None}, {"a": {"b": []}}, {"a": [{"b": {"c": 1}}]}], ids=str)
def test_a_map_that_is_not_there_is_empty(thing: Any) -> None:
    """At any step of the way."""
    assert map_at(thing, "a", "b") == {}


def test_a_map_is_found() -> None:
    """By its keys, and of a list the maps alone."""
    assert map_at({"a": {"b": {"c": 1}}}, "a", "b") == {"c": 1}
    assert list(maps_in([1, {"a": 1}, None, {}])) == [{"a": 1}, {}]
    assert list(maps_in({"a": 1})) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [("x", "x"), (True, "true"), (False, "false"), (7, "7"), (1.5, "1.5"), (10**5000, ""), (None, ""), ([], ""), ({}, "")],
    ids=["text", "true", "false", "a number", "a fraction", "a number of 5,000 digits", "null", "a list", "a map"],
)
def test_what_is_written_bare_is_text(value: Any, text: str) -> None:
    """As YAML reads it and Kubernetes means it."""
    assert text_of(value) == text


KEYS = st.sampled_from(["a", "b", "c/d", "e~f", ""])
TREES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.text("xy", max_size=1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, TREES, max_size=4), st.dictionaries(KEYS, TREES, max_size=4))
@examples(150, 20_000)
def test_it_turns_one_tree_into_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Applied to the first it gives the second, in types too; of two that are the same there is none."""
    found = list(diff(before, after, whole=("a", "b")))
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
    assert list(diff(before, after)) == found


def test_a_list_that_is_whole_is_replaced_where_that_is_shorter() -> None:
    """Terms of an affinity are written anew rather than letter by letter; of a list that is known in part each item is changed."""
    before = {"terms": [{"key": f"k{n}", "values": ["a", "b"]} for n in range(3)]}
    after = {"terms": [{"key": f"other{n}", "values": ["c", "d"]} for n in range(3)]}
    assert [one["path"] for one in diff(before, after, whole=("terms",))] == ["/terms"]
    assert len(list(diff(before, after))) == 9
    longer = {"terms": [*before["terms"], {"key": "k3"}]}
    assert [one["path"] for one in diff(before, longer, whole=("terms",))] == ["/terms/-"]


def test_what_is_removed_comes_in_the_order_of_the_tree() -> None:
    """In every process: a report that says the same must be the same text."""
    assert [one["path"] for one in diff({"b": 1, "a": 1, "c": 1, "d": 1}, {})] == ["/b", "/a", "/c", "/d"]


def edit(op: Any, path: Path, value: Any = None) -> Edit:
    return Edit(op=op, path=path, value=value, rule="tolerations", policies=("ClusterGPUPolicy/a",))


@pytest.mark.parametrize(
    ("pod", "one", "operation"),
    [
        ({}, edit("add", ("spec", "tolerations", "-"), 1), {"op": "add", "path": "/spec", "value": {"tolerations": [1]}}),
        ({"spec": {}}, edit("add", ("spec", "tolerations", "-"), 1), {"op": "add", "path": "/spec/tolerations", "value": [1]}),
        ({"spec": None}, edit("add", ("spec", "a"), 1), {"op": "add", "path": "/spec", "value": {"a": 1}}),
        ({"spec": {"t": [0]}}, edit("add", ("spec", "t", "-"), 1), {"op": "add", "path": "/spec/t/-", "value": 1}),
        ({"spec": {"t": [0]}}, edit("add", ("spec", "t", 0), 1), {"op": "add", "path": "/spec/t/0", "value": 1}),
        ({"spec": {"t": [0]}}, edit("replace", ("spec", "t", 0), 1), {"op": "replace", "path": "/spec/t/0", "value": 1}),
        ({"spec": {"t": [0]}}, edit("remove", ("spec", "t", 0)), {"op": "remove", "path": "/spec/t/0"}),
        ({"a": {"x/y~z": 1}}, edit("remove", ("a", "x/y~z")), {"op": "remove", "path": "/a/x~1y~0z"}),
        ({"a": 1}, edit("replace", ("a",), 2), {"op": "replace", "path": "/a", "value": 2}),
    ],
)
def test_an_edit_is_one_operation_in_the_smallest_place(pod: dict[str, Any], one: Edit, operation: dict[str, Any]) -> None:
    """Missing parents come with it; the working copy is what jsonpatch makes of the operation; the original stays."""
    before = copy.deepcopy(pod)
    patch = TreePatch(pod)
    patch.apply(one)
    assert patch.operations == [operation]
    assert patch.tree == jsonpatch.apply_patch(before, [operation])
    assert pod == before


def test_what_an_edit_does_not_touch_is_shared() -> None:
    """Only what lies on an edit's way is copied."""
    pod = {"spec": {"a": {"b": 1}, "c": {"d": 1}}}
    patch = TreePatch(pod)
    patch.apply(edit("add", ("spec", "a", "x"), 1))
    assert patch.tree["spec"]["c"] is pod["spec"]["c"]
    assert patch.tree["spec"]["a"] is not pod["spec"]["a"]


@given(
    st.recursive(st.text(max_size=4), lambda inner: st.dictionaries(st.text(max_size=4), inner, max_size=3) | st.lists(inner, max_size=3)),
    st.data(),
)
def test_a_pointer_leads_where_the_path_does(value: Any, data: st.DataObject) -> None:
    """For any key, slashes and tildes too."""
    path: Path = ()
    here = value
    while here and isinstance(here, dict | list) and data.draw(st.booleans()):
        step = data.draw(st.sampled_from(sorted(here))) if isinstance(here, dict) else data.draw(st.integers(0, len(here) - 1))
        path, here = (*path, step), here[step]
    assert value_at(value, path) == here
    assert digest_at(value, pointer(path)) == digest(here)


@pytest.mark.parametrize("path", ["/b", "/a/9", "/a/x", "/a/0/z", "/c/d"])
def test_nothing_stands_at_a_path_that_leads_nowhere(path: str) -> None:
    """Past a list's end, into a text, at a key that is not there."""
    assert digest_at({"a": [1], "c": "text"}, path) is None
    assert value_at({"a": [1]}, ("a", 1)) is value_at({"a": [1]}, ("b",))
