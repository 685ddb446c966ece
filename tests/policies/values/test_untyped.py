"""Objects that nobody has checked: whatever is in one, a reader gets something of the wanted type."""

from __future__ import annotations

from typing import Any

import pytest

from policies.values.untyped import map_at, maps_in, text_of


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
