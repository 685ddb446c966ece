"""documents.yaml_reader: every kind of bad text by its message, and plain words as kubectl reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.yaml_reader import documents
from tests.support.call_counts import work
from tests.support.counts import count

BAD = {
    "a: 1\nb:\n\tc: 1\n": ["line 3: found a tab; indent with spaces"],
    "a: 1\nb: {c: 1, c: 2}\n": ['line 2, b.c: the key "c" is set twice; keep one of them'],
    "a: 1\na: 2\nb: 3\nb: 4\n": [
        'line 2, a: the key "a" is set twice; keep one of them',
        'line 4, b: the key "b" is set twice; keep one of them',
    ],
    "a: b: c\n": ['line 1: found ": " where no key can be; check the indentation, or put the text in quotes'],
    "a:\n  - x\n y\n": ["line 3: expected a key of this map; indent it like the keys before"],
    "a: [1, 2\nb: 3\n": ['line 2: found a "[" that is not closed; close it with "]"'],
    "a: {b: 1\nc: 2\n": ['line 2: found a "{" that is not closed; close it with "}"'],
    'a: "x\n': ["line 2: found the end of the text inside quotes; close them"],
    "a: @x\n": ["line 1: found a character that cannot begin a value; put the text in quotes"],
    "a: b\nc: \x01\n": ["line 2: found a control character; remove it"],
    "a: .nan\nb: -.inf\nc: 1e999\n": [
        'line 1, a: .nan is not a JSON number; write ".nan" in quotes if text is meant',
        'line 2, b: -.inf is not a JSON number; write "-.inf" in quotes if text is meant',
        'line 3, c: 1e999 is not a JSON number; write "1e999" in quotes if text is meant',
    ],
    "a: " + "9" * 400: [f'line 1, a: {"9" * 37}... is not a JSON number; write "{"9" * 37}..." in quotes if text is meant'],
    "1: x\n": ['line 1: a key must be text, and 1 is a number in YAML; write "1" in quotes'],
    "on: x\n": ['line 1: a key must be text, and on is a boolean in YAML; write "on" in quotes'],
    "a: {~: x}\n": ['line 1, a: a key must be text, and ~ is nothing in YAML; write "~" in quotes'],
    "? [a]\n: 3\n": ["line 1: a key must be text; found a list, a map or an alias"],
    "a: !foo x\n": ["line 1, a: the tag !foo means nothing here; remove it"],
    "a: !!timestamp 2020-01-01\n": ["line 1, a: the tag !!timestamp means nothing here; remove it"],
    "a: !!int x\n": ['line 1, a: "x" is not a number'],
    "a: !!bool maybe\n": ["line 1, a: the tag !!bool means nothing here; remove it"],
    "a: !!set {b: c}\n": ["line 1, a: the tag !!set means nothing here; remove it"],
    "a: *x\n": ["line 1: found *x, but no &x is complete before it"],
    "a: &a {b: *a}\n": ["line 1: found *a, but no &a is complete before it"],
    "a: {<<: 3}\n": ["line 1, a: << must be a map, or a list of maps; found the number 3"],
    "a:" + " [" * 200 + "]" * 200: ["line 1: is nested deeper than 100 levels"],
    "[" * 200 + "]" * 200: ["is nested deeper than 100 levels"],
    '{"a": 1': ["line 1: is not JSON: unexpected end of data; column 8"],
    '{"a": NaN}': ["line 1: is not JSON: unexpected character, expected a JSON value; column 7"],
    "": ["has no document; it is empty, or has only comments"],
    "# only\n# comments\n": ["has no document; it is empty, or has only comments"],
    "---\n---\n": ["has no document; it is empty, or has only comments"],
}


def errors(text: str) -> list[str]:
    return [str(error) for error in documents(text, "f.yaml")[1]]


def value(text: str) -> Any:
    found, wrong = documents(text, "f.yaml")
    assert wrong == []
    (document,) = found
    return document.value


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text[:24]))
def test_bad_text(text: str) -> None:
    """What is wrong is told with its line and, where there is one, its path; nothing is read."""
    found, wrong = documents(text, "f.yaml")
    assert found == []
    assert [str(error) for error in wrong] == [f"berth: f.yaml{', ' if one[:4] == 'line' else ': '}{one}" for one in BAD[text]]


@pytest.mark.parametrize(
    ("word", "read"),
    [
        ("yes", True), ("Off", False), ("y", True), ("true", True), ("~", None), ("", None), ("Null", None),
        ("2026-11-20", "2026-11-20"), ("12:30:45", "12:30:45"), ("1.2.3", "1.2.3"), ("+", "+"), ("$GPUS", "$GPUS"), ("10gb", "10gb"),
        ("0x10", 16), ("010", 8), ("0o10", 8), ("0b11", 3), ("-7", -7), ("1_000", 1000), ("08", 8.0), ("99999999999999999999999", 1e23),
        ("1e3", 1000.0), (".5", 0.5), ("-1.5", -1.5), ("'1'", "1"), ('"yes"', "yes"), ("!!str 1", "1"), ("!!int '3'", 3),
        ("!!float 3", 3.0), ("!!bool yes", True), ("!!null x", None),
    ],
)  # fmt: skip
def test_words_are_what_kubectl_makes_of_them(word: str, read: object) -> None:
    """Booleans of YAML 1.1, Go's numbers; no dates and no sixties."""
    found = value(f"a: {word}\n")["a"]
    assert (found, type(found)) == (read, type(read))


def test_one_bad_document_does_not_hide_the_others() -> None:
    """Documents after one that YAML cannot read are still read, and lines are those of the file."""
    found, wrong = documents("a: 1\n---\n\tb: 1\n---\nc: 2\n---\nd: [\n", "f.yaml")
    assert [(document.index, document.value) for document in found] == [(1, {"a": 1}), (3, {"c": 2})]
    assert [str(error) for error in wrong] == [
        "berth: f.yaml, document 2, line 3: found a tab; indent with spaces",
        "berth: f.yaml, document 4, line 8: is not YAML: did not find expected node content",
    ]


def test_bad_value_hides_only_its_document() -> None:
    """A document with two equal keys is left out; the documents around it are read."""
    found, wrong = documents("a: 1\n---\nb: 1\nb: 2\n---\nc: 3\n", "f.yaml")
    assert [document.value for document in found] == [{"a": 1}, {"c": 3}]
    assert [str(error) for error in wrong] == ['berth: f.yaml, document 2, line 4, b: the key "b" is set twice; keep one of them']


def test_cut_text_keeps_its_numbers() -> None:
    """Comments and directives before the first marker are no document, with or without a bad one after them."""
    found, wrong = documents("# head\n%YAML 1.1\n---\na: 1\n---\nb: [\n", "f.yaml")
    assert [(document.index, document.value) for document in found] == [(1, {"a": 1})]
    assert wrong[0].document == 2


def test_empty_documents_are_skipped_and_counted() -> None:
    """A document keeps the number that its separators give it, and alone it needs none."""
    found, wrong = documents("---\n---\na: 1\n---\n# nothing\n", "f.yaml")
    assert [(document.index, document.only, document.value) for document in found] == [(2, True, {"a": 1})]
    assert wrong == []


def test_aliases_are_copies() -> None:
    """An alias is the value again, not the same object: nobody's edit shows in two places."""
    read = value("a: &x {b: [1]}\nc: *x\nd: &y z\ne: *y\n")
    assert read == {"a": {"b": [1]}, "c": {"b": [1]}, "d": "z", "e": "z"}
    assert read["a"] is not read["c"]


def test_merge_keys() -> None:
    """Merged maps fill in what the map itself does not say; the first of several wins."""
    assert value("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n")["d"] == {"b": 1, "c": 3}
    assert value("a: {<<: [{b: 1}, {b: 2, c: 2}]}\n")["a"] == {"b": 1, "c": 2}


def test_alias_bomb_is_stopped() -> None:
    """A few lines that would become 10^60 values are rejected: nobody would see the end of making them."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 60)]
    assert errors("\n".join(lines)) == ["berth: f.yaml, line 4: aliases bring in more than 10000 values; write them out"]


def test_json() -> None:
    """JSON goes to a JSON reader, and a key that is given twice is found as in YAML; JSON documents between markers are YAML."""
    assert value(' {"a": [1, 2.5, null], "b": "b"}') == {"a": [1, 2.5, None], "b": "b"}
    assert errors('{"a": {"b": 1,\n"b": 2}}') == ['berth: f.yaml, line 2, a.b: the key "b" is set twice; keep one of them']
    assert value("[]") == []
    assert [document.value for document in documents('{"a": 1}\n---\n{"b": 2}\n', "f")[0]] == [{"a": 1}, {"b": 2}]
    assert value("{a: b}") == {"a": "b"}


def test_byte_order_mark_and_carriage_returns() -> None:
    """Files from other systems read the same."""
    assert value("\ufeffa: b\r\nc: d\r\n") == {"a": "b", "c": "d"}


def test_scalar_documents_are_documents() -> None:
    """What is no map is read too: who wants a map says so."""
    assert value("hello") == "hello"


def test_ten_times_as_many_pods_are_read_with_ten_times_the_work() -> None:
    """Pods of 2.7 KB in one file; work is calls of Python functions, which are the same on every machine."""
    container = "  - {name: c, image: 'registry.example/x:1', resources: {limits: {cpu: 1}}}\n"
    pod = "kind: Pod\nspec:\n  containers:\n" + container * 36
    number = count(20, 100)
    assert work(lambda: reads(pod, 10 * number)) < 10.5 * work(lambda: reads(pod, number))


def reads(pod: str, number: int) -> None:
    """A file of so many documents."""
    assert len(documents("---\n".join([pod] * number), "f.yaml")[0]) == number


PIECES = [
    "a",
    "b: ",
    "- ",
    "\n",
    "\n  ",
    "---\n",
    "...\n",
    *"{}[],'\"|\t",
    "&x ",
    "*x",
    "<<: ",
    "!t ",
    "%YAML 1.1\n",
    "? ",
    "1",
    "yes",
    "~",
    "\x00",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_text_is_read_or_told(text: str) -> None:
    """No text crashes the reader: it gives documents or says what is wrong."""
    found, wrong = documents(text, "f.yaml")
    assert found or wrong


def test_a_placeholder_is_told_once_with_its_place() -> None:
    """Of a template that was not rendered: file, line, path, what it is and what to type; one line for a document."""
    text = "a: {{ .Values.a }}\nb: [{{ x | default 1 }}, 2]\n---\nc: 1\n"
    found, wrong = documents(text, "f.yaml")
    assert [document.value for document in found] == [{"c": 1}]
    (message,) = map(str, wrong)
    assert message.startswith(
        "berth: f.yaml, document 1, line 1, a: found the placeholder {{ .Values.a }} and 1 more; render the template first"
    )


def test_who_asks_for_them_gets_documents_with_placeholders() -> None:
    """Each is the text that it is, and the document says where they are."""
    found, wrong = documents("a: {{ .Values.a }}\nb: [{{ x | default 1 }}, 2]\n", "f.yaml", unfilled=True)
    assert wrong == []
    assert found[0].value == {"a": "{{ .Values.a }}", "b": ["{{ x | default 1 }}", 2]}
    assert [one.path for one in found[0].unfilled] == [("a",), ("b", 0)]


@pytest.mark.parametrize("text", ["{{- if .Values.a }}\na: 1\n", "a: {{ b }}-c\n", "a:\n{%- if b %}\n  c: 1\n"])
def test_lines_of_a_template_are_told_as_such(text: str) -> None:
    """What YAML says of them would help nobody."""
    (message,) = errors(text)
    assert "found a line of a template: " in message
    assert "render the template first" in message


def test_a_merge_conflict_is_told_as_such() -> None:
    """Its marks are what is wrong, not the key after them."""
    (message,) = errors("<<<<<<< HEAD\na: 1\n=======\n")
    assert "merge conflict" in message
