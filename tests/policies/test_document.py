"""policies.document and catalog.nearest: how bad input is told."""

from __future__ import annotations

import pytest

from catalog.nearest import hint, list_known, nearest
from kube.tree import kind_of
from policies.document import Document, InputError, objects


def test_error_says_what_is_known() -> None:
    """File, document, line and path are there as far as they are known."""
    whole = InputError(file="a.yaml", document=2, line=7, path=("spec", "mode"), message="must be text")
    assert str(whole) == "berth: a.yaml, document 2, line 7, spec.mode: must be text"
    assert str(InputError(file="a.yaml", message="is empty")) == "berth: a.yaml: is empty"


def test_document_number_only_among_several() -> None:
    """The only document of a file needs no number."""
    assert str(Document(file="a", value={}).error(("x",), "no")) == "berth: a, x: no"
    assert str(Document(file="a", index=2, value={}, only=False).error(("x",), "no")) == "berth: a, document 2, x: no"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing (null)"),
        (True, "the boolean true"),
        (3, "the number 3"),
        ("a", 'the text "a"'),
        ("a" * 70, f'the text "{"a" * 57}..."'),
        ([], "a list"),
        ({}, "a map"),
    ],
)
def test_kind_of(value: object, words: str) -> None:
    """Values are named in the words of YAML's readers, long text is cut."""
    assert kind_of(value) == words


def test_objects_of_a_list() -> None:
    """The items of a List are objects of their own, with their path; what is no object is told."""
    items = [{"kind": "Pod"}, {"kind": "List", "items": []}, 3]
    found = list(objects(Document(file="a", value={"kind": "List", "items": items})))
    assert isinstance(found[0], Document)
    assert (found[0].value, found[0].path) == ({"kind": "Pod"}, ("items", 0))
    assert [str(one) for one in found[1:]] == [
        "berth: a, items[1]: a List inside a List; write its items into the outer one",
        "berth: a, items[2]: must be an object, a map with apiVersion and kind; found the number 3",
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("hello", 'berth: a: must be an object, a map with apiVersion and kind; found the text "hello"'),
        ({"kind": "List"}, "berth: a, items: a List must have a list of objects in items; found nothing (null)"),
        ({"kind": "PodList", "items": {}}, "berth: a, items: a PodList must have a list of objects in items; found a map"),
    ],
)
def test_no_object(value: object, message: str) -> None:
    """A document that holds no object says what was wanted."""
    assert [str(one) for one in objects(Document(file="a", value=value))] == [message]


def test_nearest_ignores_case() -> None:
    """A wrong case is the commonest mistake."""
    assert nearest("HOPPER", ["hopper", "ampere"]) == "hopper"
    assert nearest("x", ["hopper"]) is None


def test_hint() -> None:
    """The nearest name, else the known ones, else nothing."""
    assert hint("hoper", ["hopper"]) == '; did you mean "hopper"?'
    assert hint("x", ["b", "a"]) == "; known: a, b"
    assert hint("x", []) == ""


def test_long_lists_are_cut() -> None:
    """After twenty names the rest is counted."""
    assert list_known(["a"] * 22) == ", ".join(["a"] * 20) + " and 2 more"
