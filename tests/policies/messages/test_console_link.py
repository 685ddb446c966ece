"""The address at the end of an answer: what it names, and what it never does."""

from __future__ import annotations

from typing import Any

import pytest

from policies.messages.console_link import LONGEST_URL, URL, controller, link_workload, see


def _pod(*owners: Any) -> dict[str, Any]:
    return {"metadata": {"name": "train-x7k2q", "uid": "u", "ownerReferences": [*owners]}}


def test_it_names_the_workload_and_no_pod() -> None:
    """That which made the pod; a bare pod has the code alone."""
    other = {"kind": "Queue", "name": "q"}
    owner = {"kind": "Job", "name": "train", "uid": "1", "controller": True}
    assert controller("ml", _pod(other, owner)) == "ml/Job/train"
    assert see("https://c.example", "ml/Job/train", "BERTH-101") == "See https://c.example/job?workload=ml/Job/train"
    assert see("https://c.example", controller("ml", _pod()), "BERTH-101") == "See https://c.example/job?code=BERTH-101"


@pytest.mark.parametrize(
    "owner",
    [
        {"kind": "Job", "name": "a&b=c", "controller": True},
        {"kind": "Job", "name": "x" * 300, "controller": True},
        {"kind": "<b>", "name": "train", "controller": True},
        {"kind": ["Job"], "name": "train", "controller": True},
        {"kind": "Job", "name": None, "controller": True},
        {"kind": "Job", "name": "train", "controller": "yes"},
        "Job",
        None,
    ],
)
def test_what_authors_write_into_owners_gets_into_no_address(owner: Any) -> None:
    """Nothing that would have to be escaped, and nothing long."""
    assert controller("ml", _pod(owner)) == ""
    assert controller("ml", {"metadata": {"ownerReferences": owner}}) == ""
    assert controller("ml", {"metadata": owner}) == ""


def test_a_namespace_that_is_none_is_not_named() -> None:
    """A review may have any text there."""
    assert link_workload("ml team", "Job", "train") == ""
    assert link_workload(None, "Job", "train") == ""


@pytest.mark.parametrize("url", ["https://berth.example.com", "http://10.0.0.1:8480", "https://x.example/tools/berth/", "http://localhost"])
def test_addresses_of_consoles(url: str) -> None:
    """With a port and a path."""
    assert URL.fullmatch(url)
    assert len(url) <= LONGEST_URL


@pytest.mark.parametrize(
    "url", ["berth.example.com", "javascript:alert(1)", "https://x y", "https://x/?a=b", "https://x/#a", "https://x\n", "ftp://x"]
)
def test_what_is_no_address_of_a_console(url: str) -> None:
    """Nothing that would not be one word, or that has a query of its own."""
    assert not URL.fullmatch(url)
