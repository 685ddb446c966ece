"""Helm, for every test of this folder."""

from __future__ import annotations

import pytest

from tests.testcluster.fixtures import needs_programs


@pytest.fixture(autouse=True, scope="session")
def helm_is_there(request: pytest.FixtureRequest) -> None:
    """Skipped aloud where there is no Go to build it with."""
    needs_programs(request.config, ["helm"])
