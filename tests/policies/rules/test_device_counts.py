"""Device counts: the slice that was probably meant."""

from __future__ import annotations

import pytest

from policies.count import Count
from policies.rules.device_counts import _all_allowed, _nearest_slice
from tests import golden

KNOWN = sorted({profile.resource for gpu in golden.catalog_with().gpus for profile in gpu.mig})


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("nvidia.com/mig-3g.70gb", "nvidia.com/mig-3g.71gb"),
        ("nvidia.com/mig-1g.11gb", "nvidia.com/mig-1g.10gb"),
        ("nvidia.com/mig-7g.99gb", "nvidia.com/mig-7g.96gb"),
        ("nvidia.com/mig-1g.10gb.mee", "nvidia.com/mig-1g.10gb.me"),
        ("nvidia.com/mig-1c.3g.20gb", "nvidia.com/mig-3g.20gb"),
        ("quite something else", None),
    ],
)
def test_the_nearest_slice_has_as_much_compute(asked: str, meant: str | None) -> None:
    """And the memory that is nearest; else the nearest name, if there is one."""
    assert _nearest_slice(asked, KNOWN) == meant


@pytest.mark.parametrize(
    ("least", "most", "allowed"),
    [(1, 1, True), (1, 2, True), (0, 2, True), (2, 4, False), (4, 4, True), (0, 10**70, False), (10**70, 10**70, False)],
)
def test_every_number_that_it_may_be_is_among_the_allowed(least: int, most: int, allowed: bool) -> None:
    """However many digits an author writes."""
    assert _all_allowed(Count(least, most), most, (1, 2, 4, 8)) is allowed
