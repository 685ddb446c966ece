"""The unified diff of two versions of a manifest."""

from __future__ import annotations

import difflib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cli.terminal.screen import Terminal
from documents import yaml_writer
from documents.diff import marked_lines, unified
from kube.tree import set_at

VALUES = st.recursive(
    st.one_of(st.none(), st.integers(0, 3), st.sampled_from(["a", "b", "x\ny\n"]), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from("abcdef"), inner, max_size=4)),
    max_leaves=14,
)
LONG = {"first": 1, "list": [{"name": str(number), "value": number} for number in range(9)], "last": {"a": 1}}


@given(VALUES, VALUES)
def test_both_sides_can_be_read_off_the_diff(before: Any, after: Any) -> None:
    """Context and minus lines are the old YAML, context and plus lines the new, whatever changed."""
    marked = marked_lines(before, after)
    assert [line[1:] for line in marked if line[0] != "+"] == yaml_writer.yaml_lines(before)
    assert [line[1:] for line in marked if line[0] != "-"] == yaml_writer.yaml_lines(after)


def test_the_same_object_has_no_diff() -> None:
    """Nothing is printed, not even headers, when nothing changed."""
    assert unified(LONG, LONG, "f") == []
    assert unified(LONG, set_at(LONG, ("first",), 1), "f") == []


def test_form_is_that_of_a_unified_diff() -> None:
    """Headers, hunks, line numbers and context are those of the standard library's diff."""
    after = set_at(set_at(LONG, ("list", 0, "value"), 9), ("last", "b"), 2)
    ours = unified(LONG, after, "f")
    theirs = list(difflib.unified_diff(yaml_writer.yaml_lines(LONG), yaml_writer.yaml_lines(after), lineterm=""))
    assert ours[2:] == theirs[2:]
    assert ours[:2] == ["--- f", "+++ f (as admitted)"]


def test_an_empty_map_that_is_filled_shows_one_line_gone() -> None:
    """``annotations: {}`` becomes a key with lines of its own."""
    assert unified({"annotations": {}}, {"annotations": {"a": "b"}}, "f")[2:] == [
        "@@ -1 +1,2 @@",
        "-annotations: {}",
        "+annotations:",
        "+  a: b",
    ]


def test_a_renamed_key_shows_the_old_before_the_new() -> None:
    """In a MIG rename the limit that goes stands above the one that comes."""
    assert marked_lines({"l": {"gpu": 1}}, {"l": {"mig": 1}}) == [" l:", "-  gpu: 1", "+  mig: 1"]


def test_one_and_true_differ() -> None:
    """What Python holds equal, and YAML writes differently, is a change."""
    assert marked_lines([1], [True]) == ["-- 1", "+- true"]


def test_colours_are_gits() -> None:
    """Headers bold, hunks cyan, minus red, plus green, context plain; a removed list item is no header."""
    bold, red, green, cyan, off = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
    diff = ["--- f", "+++ f (as admitted)", "@@ -1 +1 @@", " k:", "-- -x", "+- y"]
    assert list(Terminal(colour=True).paint_diff(diff)) == [
        f"{bold}--- f{off}", f"{bold}+++ f (as admitted){off}", f"{cyan}@@ -1 +1 @@{off}", " k:", f"{red}-- -x{off}", f"{green}+- y{off}",
    ]  # fmt: skip
