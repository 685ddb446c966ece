"""YAML as it is printed."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from documents import yaml_writer
from documents.yaml_reader import documents

NOT_TEXT = [
    "1",
    "1e3",
    "0x1f",
    "0o7",
    "1_000",
    "1.5",
    ".5",
    "+1",
    "-1",
    "12:30",
    "2024-01-01",
    "on",
    "No",
    "y",
    "null",
    "~",
    "true",
    "NaN",
    ".inf",
]
MARKS = [
    "",
    " ",
    "a: b",
    "a #b",
    "x:",
    "-",
    "- a",
    "---",
    "...",
    "=",
    "<<",
    "*a",
    "&a",
    "!x",
    "#a",
    "%a",
    "@a",
    "`a",
    "|",
    "?",
    "{}",
    "[]",
    "a,b",
    "'",
    '"',
]
BREAKS = ["\ttab", "a\nb", "a\nb\n", "a\n\n", "\n", " lead\nx", "a\n  b\n\n c", "a\n \n", "a\x85b\n", "a\u2028b", "\x00"]
AWKWARD = [*NOT_TEXT, *MARKS, *BREAKS, "é", "日本", "\U0001f600"]
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), WORDS, st.sampled_from(AWKWARD))
KEYS = st.sampled_from(["a", "b", "nvidia.com/gpu", "1", "x: y"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)), max_leaves=10
)


@given(VALUES)
def test_every_value_reads_back_the_same(value: Any) -> None:
    """What is printed is the same value again, for PyYAML's reader."""
    assert yaml.load(yaml_writer.write_yaml(value), Loader=yaml.CSafeLoader) == value


@pytest.mark.parametrize("text", AWKWARD)
def test_text_that_looks_like_something_else_stays_text(text: str) -> None:
    """Text reads back as text, for Berth's own reader too, which reads as kubectl does."""
    found, errors = documents(yaml_writer.write_yaml({"k": text, "l": [text]}), "f")
    assert errors == []
    assert found[0].value == {"k": text, "l": [text]}


def test_layout_is_kubectls() -> None:
    """Lists stand at their key's indent, maps in lists start on the dash's line, several lines are a block."""
    value = {"spec": {"args": ["-c", "1"], "env": [{"name": "A", "value": "x\ny\n"}], "none": None, "empty": {}, "no": []}}
    assert yaml_writer.write_yaml(value) == (
        "spec:\n  args:\n  - -c\n  - '1'\n  env:\n  - name: A\n    value: |\n      x\n      y\n  none: null\n  empty: {}\n  'no': []\n"
    )


def test_plain_words_are_not_quoted() -> None:
    """Image names, measures, flags and sentences read as people write them."""
    for text in ("nvidia/cuda:12.6.2-base", "16Gi", "500m", "--flag=value", "two words", "1.2.3", "10.0.0.1", "nvidia.com/gpu", "$GPUS"):
        assert yaml_writer.scalar(text) == text
