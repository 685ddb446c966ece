"""Device counts: the slice that was probably meant."""

from __future__ import annotations

import pytest

from policies.slice_names import nearest_slice
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
    assert nearest_slice(asked, KNOWN) == meant
