"""Text from outside: nothing of it acts on a terminal, and JSON of it means the same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from documents import yaml_writer
from documents.printable import json_text, printable
from documents.yaml_reader import documents

ANY = st.text(st.characters())
"""with surrogates, as names of files have them that are not UTF-8"""


def test_controls_and_marks_of_direction_are_escapes() -> None:
    """What is there can be read, and copied into a bug report."""
    assert printable("a\x1b[31mb\x9b\u202ec\n\t\x7f") == r"a\x1b[31mb\x9b\u202ec\n\t\x7f"
    assert printable("Größe 計算 ✓") == "Größe 計算 ✓"


def test_what_is_too_long_is_cut() -> None:
    """After it was made printable: an escape may be cut, and is harmless."""
    assert printable("abcdef", 5) == "ab..."
    assert printable("abcde", 5) == "abcde"


@given(ANY)
def test_any_text_becomes_printable(text: str) -> None:
    """In one line; and what was printable is as it was."""
    assert printable(text).isprintable()
    assert not text.isprintable() or printable(text) == text


@given(st.recursive(ANY, lambda inner: st.lists(inner) | st.dictionaries(ANY, inner), max_leaves=5))
def test_json_is_printable_and_means_the_same(value: Any) -> None:
    """Every script is readable, every other character an escape."""
    text = json_text(value)
    assert all(line.isprintable() for line in text.split("\n"))
    assert json.loads(text) == json.loads(json.dumps(value))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_yaml_is_printable_and_means_the_same(text: str) -> None:
    """But for tabs, which stand in scripts, and are in no name."""
    written = yaml_writer.write_yaml({"k": text, "list": [text]})
    assert all(line.replace("\t", "").isprintable() for line in written.split("\n"))
    (document,) = documents(written, "x.yaml")[0]
    assert document.value == {"k": text, "list": [text]}
