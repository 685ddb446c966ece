"""docs/performance.md has the figures of bench/RESULTS.md and is short."""

from __future__ import annotations

import re

import pytest

from tests.docs import performance
from tests.support.results_page import RESULTS, marks

MOST_WORDS = 500


def test_every_figure_is_one_of_the_results() -> None:
    """To the digit; the counts of targets are counted."""
    text = performance.page().partition("\n## ")[2]
    figures = set(re.findall(r"\d[\d.,]*\d|\d", text))
    known = set(re.findall(r"\d[\d.,]*\d|\d", RESULTS.read_text(encoding="utf-8")))
    assert len(figures) > 40
    assert figures - known == set()


def test_the_page_is_short() -> None:
    """bench/RESULTS.md has the rest."""
    assert len(performance.page().split()) <= MOST_WORDS


@pytest.mark.parametrize("name", ["bench servers", "bench endtoend", "bench memory", "bench sizing", "propagation"])
def test_a_missing_part_is_named(name: str) -> None:
    """A part that a command no longer writes."""
    results = RESULTS.read_text(encoding="utf-8").replace(marks(name)[0], "")
    with pytest.raises(ValueError, match=f"has no part '{name}'"):
        performance.page(results)


def test_a_burst_that_failed_is_noticed() -> None:
    """The sentence about it is not generated."""
    results = RESULTS.read_text(encoding="utf-8").replace("0 fail-open: 0 failed", "0 fail-open: 3 failed")
    with pytest.raises(ValueError, match="change the sentence"):
        performance.page(results)
