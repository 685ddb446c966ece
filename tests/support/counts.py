"""How much is tried: few examples of a property in ``make test``, all of them and the longest tests in ``make prove`` (BERTH_PROVE=1)."""

from __future__ import annotations

import os

import pytest

PROVE = os.environ.get("BERTH_PROVE") == "1"
only_in_prove = pytest.mark.skipif(not PROVE, reason="in make prove alone; its docstring names what make test has of it")


def count(small: int, full: int) -> int:
    """``full`` under ``make prove``, else ``small``."""
    return full if PROVE else small
