"""How many examples a property is tried on: small in ``make test``, full in ``make prove`` (BERTH_PROVE=1)."""

from __future__ import annotations

import os

PROVE = os.environ.get("BERTH_PROVE") == "1"


def count(small: int, full: int) -> int:
    """``full`` under ``make prove``, else ``small``."""
    return full if PROVE else small
