"""JSON texts, and keys that they give twice."""

from __future__ import annotations

import pytest

from documents.json_reader import DuplicateKey, NotJson, begins, is_deeper, parse_json


@pytest.mark.parametrize(
    ("text", "wanted"), [('{"a": 1}', True), (" [1]", False), ("[]", True), ('[{"a": 1}]', True), ("{{ x }}", False), ("{a: b}", False)]
)
def test_what_begins_as_json(text: str, *, wanted: bool) -> None:
    """A flow map of YAML and a template's placeholder do not."""
    assert begins(text) is wanted


def test_a_key_that_is_given_twice() -> None:
    """At any depth; the same key in two maps is none."""
    assert parse_json('{"a": {"b": 1}, "c": {"b": 1}}') == {"a": {"b": 1}, "c": {"b": 1}}
    for text in ('{"a": 1, "a": 1}', '[{"x": {"a": 1, "b": 2, "a": 3}}]'):
        with pytest.raises(DuplicateKey):
            parse_json(text)


def test_what_is_no_json_says_where() -> None:
    """With the line."""
    with pytest.raises(NotJson, match="is not JSON") as caught:
        parse_json('{"a":\n1,}')
    assert caught.value.line == 2


def test_depth() -> None:
    """Levels of maps and lists."""
    assert is_deeper([[[]]], 1)
    assert not is_deeper({"a": [1]}, 2)
