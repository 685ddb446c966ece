"""The kept corpus: each body that reached something new, or once broke something, under every world, each time the tests run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import campaign, oracle

BODIES = sorted(campaign.CORPUS.iterdir())


@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.name)
def test_a_kept_body_is_judged_rightly(path: Path) -> None:
    """Every law of the oracle holds under every world."""
    oracle.check_everywhere(path.read_bytes())


def test_the_corpus_stays_small() -> None:
    """Less than a megabyte, and no body that a person would not read."""
    sizes = [path.stat().st_size for path in BODIES]
    assert sum(sizes) < 2**20
    assert max(sizes) <= 8192
