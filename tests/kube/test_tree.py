"""Changes to trees that share what they leave alone; patches are compared with the API server's code in tests/kube/upstream."""

from __future__ import annotations

from typing import Any

import pytest

from kube.tree import insert_at, map_at, maps_in, pointer, remove_at, set_at, text_of, value_at

POD: dict[str, Any] = {
    "metadata": {"annotations": {"a/b": "1"}},
    "spec": {"containers": [{"name": "c"}, {"name": "d"}], "tolerations": None},
}


def test_what_is_not_on_the_way_is_shared() -> None:
    """Only the maps and lists from the root to the change are new."""
    after = set_at(POD, ("spec", "containers", 0, "image"), "x")
    assert after["metadata"] is POD["metadata"]
    assert after["spec"]["containers"][1] is POD["spec"]["containers"][1]
    assert "image" not in POD["spec"]["containers"][0]


def test_missing_and_null_parents_are_made() -> None:
    """A list where an index or - follows, else a map."""
    after = insert_at(insert_at(POD, ("spec", "tolerations", "-"), "t"), ("spec", "affinity", "nodeAffinity", "terms", 0, "x"), 1)
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
    assert pointer({"0": [{"a": 1}]}, "/0/0/a") == ("0", 0, "a")


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
