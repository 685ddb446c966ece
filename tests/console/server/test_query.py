"""Fields of addresses and forms."""

from __future__ import annotations

import pytest

from console.server.query import Query, QueryError, paged


def test_fields_are_read_and_written() -> None:
    """An address keeps what it had, but for what is changed; "" takes a field out."""
    query = Query.of("a=1&b=x%2Fy&a=2")
    assert query.text("a") == "2"
    assert query.link("/p", b="", c="d e") == "/p?a=2&c=d+e"
    assert Query({}).link("/p") == "/p"


def test_namespaces_that_are_named_are_known() -> None:
    """Those of a namespace, a pod and a workload; nothing that can be none."""
    query = Query({"namespace": "web", "pod": "shop/train-0", "workload": "lab/Job/x"})
    assert query.namespaces() == {"web", "shop", "lab"}
    assert Query({"namespace": "W", "pod": "../x", "workload": "a" * 64}).namespaces() == frozenset()


@pytest.mark.parametrize("text", ["0", "-1", "1e3", "\u0663", "x", "", "9" * 5000, "000000001" + "0" * 5000])
def test_a_page_is_a_small_number(text: str) -> None:
    """Anything else is an error that says so."""
    with pytest.raises(QueryError, match="must be a number"):
        Query({"page": text}).page()


def test_choices_have_hints() -> None:
    """A misspelt one is named with the nearest."""
    with pytest.raises(QueryError, match='did you mean "enforce"'):
        Query({"as": "enfroce"}).choice("as", ("audit", "enforce"), "audit")


@pytest.mark.parametrize(("total", "page", "shown"), [(0, "1", []), (3, "1", [0, 1]), (3, "2", [2]), (3, "99", [2])])
def test_a_page_past_the_end_is_the_last(total: int, page: str, shown: list[int]) -> None:
    """Rows by pages, with addresses to both sides where there are some."""
    found = paged(range(total), Query({"page": page}), "/p", size=2)
    assert list(found.rows) == shown
    assert bool(found.before) == (found.number > 1)
    assert bool(found.after) == (found.number < found.last)
