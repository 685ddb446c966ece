"""Edits as JSON Patch: against the jsonpatch library, in the smallest place, and the record of who wrote what."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.tree import Path
from policies.patch.applied import digest, digest_at
from policies.patch.json_patch import PodPatch, pointer, value_at
from policies.verdict import Edit


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
    patch = PodPatch(pod)
    patch.apply(one)
    assert patch.operations == [operation]
    assert patch.pod == jsonpatch.apply_patch(before, [operation])
    assert pod == before


def test_what_an_edit_does_not_touch_is_shared() -> None:
    """Only what lies on an edit's way is copied."""
    pod = {"spec": {"a": {"b": 1}, "c": {"d": 1}}}
    patch = PodPatch(pod)
    patch.apply(edit("add", ("spec", "a", "x"), 1))
    assert patch.pod["spec"]["c"] is pod["spec"]["c"]
    assert patch.pod["spec"]["a"] is not pod["spec"]["a"]


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
