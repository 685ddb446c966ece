"""Resource names that stand in no list: what their look says, and how much is remembered of them."""

from __future__ import annotations

import pytest

from catalog import LONGEST_NAME, Resource
from policies.state.lookalikes import Lookalikes
from tests.support.cases.golden import catalog_with


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("acme.example/npu", Resource(name="acme.example/npu", vendor="", kind="other")),
        ("example.com/widget", None),
        ("nvdia.com/gpu", None),
        ("gpu", None),
        (f"acme.example/{'n' * LONGEST_NAME}gpu", None),
    ],
    ids=["a word for an accelerator", "no such word", "a misspelling", "no domain", "longer than any"],
)
def test_a_name_says_what_it_may_be(name: str, resource: Resource | None) -> None:
    """An accelerator of nobody known, where a word of the name is one; a known misspelling is told otherwise."""
    assert Lookalikes(catalog_with()).resource(name) == resource


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many names authors invent."""
    monkeypatch.setattr("policies.state.lookalikes._MOST_NAMES", 3)
    found = Lookalikes(catalog_with())
    assert [found.resource(f"example.com/{number}") for number in range(10)] == [None] * 10
    assert len(found._found) <= 3
