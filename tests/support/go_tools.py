"""Programs in Go that tests check Berth with; how they are built and kept: ``tests.testcluster.programs``.

Without Go the tests that need one are skipped, loudly; on a build machine (``CI``) they fail.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.testcluster import programs


def program(name: str) -> Path:
    """Return the program, built first where it has to be. Raises BuildFailed."""
    try:
        return programs.path(name)
    except programs.NoProgram as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"this test checks with a program in Go. {error}")
