"""Edits as JSON Patch: against the jsonpatch library, in the smallest place, and the record of who wrote what."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.patch import APPLIED, Patch, digest, digest_at, finish, pointer, value_at
from policies.verdict import Edit, Path

NAMES = frozenset({"ClusterGPUPolicy/a"})


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
    patch = Patch(pod)
    patch.apply(one)
    assert patch.operations == [operation]
    assert patch.pod == jsonpatch.apply_patch(before, [operation])
    assert pod == before


def test_what_an_edit_does_not_touch_is_shared() -> None:
    """Only what lies on an edit's way is copied."""
    pod = {"spec": {"a": {"b": 1}, "c": {"d": 1}}}
    patch = Patch(pod)
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


def entries(patch: tuple[dict[str, Any], ...]) -> Any:
    text = next(op["value"][APPLIED] if op["path"].endswith("annotations") else op["value"] for op in patch if "annotations" in op["path"])
    return json.loads(text)


def test_the_record_names_the_index_that_an_append_got() -> None:
    """``-`` in the patch, a number in the record, whether or not the list was there."""
    there = {"metadata": {"annotations": {}}, "spec": {"tolerations": [0]}}
    assert entries(finish(there, [edit("add", ("spec", "tolerations", "-"), 1)], None, NAMES))[0]["path"] == "/spec/tolerations/1"
    assert (
        entries(finish({"metadata": {}}, [edit("add", ("spec", "tolerations", "-"), 1)], None, NAMES))[0]["path"] == "/spec/tolerations/0"
    )
    assert entries(finish({"metadata": {}}, [edit("add", ("spec", "grace"), 1)], None, NAMES))[0]["path"] == "/spec/grace"


@pytest.mark.parametrize(
    "standing",
    [
        "mine",
        "[" * 100_000,
        "7",
        "[1]",
        '[{"by":[],"rule":"r"}]',
        '[{"by":[1],"rule":"r","path":"/a","is":"x"}]',
        '[{"by":"a","rule":"r","path":"/a","is":"x"}]',
        7,
    ],
    ids=["text", "too deep", "a number", "no entry", "half an entry", "a wrong name", "a wrong list", "no text"],
)
def test_what_is_no_record_is_never_read(standing: object) -> None:
    """An author's text under our key is dropped, whatever it is."""
    pod = {"metadata": {"annotations": {APPLIED: standing}}, "a": 1}
    assert len(entries(finish(pod, [edit("replace", ("a",), 2)], standing, NAMES))) == 1


def test_a_record_is_kept_while_it_is_true() -> None:
    """Policy in force and value unchanged; then nothing is written at all."""
    entry = {"by": ["ClusterGPUPolicy/a"], "rule": "r", "path": "/a", "is": digest(1)}
    text = json.dumps([entry], separators=(",", ":"))
    pod = {"metadata": {"annotations": {APPLIED: text}}, "a": 1}
    assert finish(pod, [], text, NAMES) == ()
    assert finish({**pod, "a": 2}, [], text, NAMES) == ({"op": "remove", "path": f"/metadata/annotations/{APPLIED.replace('/', '~1')}"},)
    assert len(finish(pod, [], text, frozenset())) == 1


def test_a_long_record_becomes_a_count_and_stays_one() -> None:
    """Past one KiB; a second call without edits leaves it alone, one with edits counts on."""
    pod: dict[str, Any] = {"metadata": {"annotations": {}}}
    many = [edit("add", ("spec", f"key-{i}"), i) for i in range(20)]
    patch = finish(pod, many, None, NAMES)
    summary = entries(patch)
    assert summary["edits"] == 20
    edited = jsonpatch.apply_patch(pod, list(patch))
    standing = edited["metadata"]["annotations"][APPLIED]
    assert len(standing) < 120
    assert finish(edited, [], standing, NAMES) == ()
    assert entries(finish(edited, [edit("add", ("spec", "more"), 1)], standing, NAMES))["edits"] == 21
