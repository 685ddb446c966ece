"""Helm, for every test of this folder, and a cluster for those that install."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import control_plane, needs_programs


@pytest.fixture(autouse=True, scope="session")
def helm_is_there(request: pytest.FixtureRequest) -> None:
    """Skipped aloud where there is no Go to build it with."""
    needs_programs(request.config, ["helm"])


@pytest.fixture(scope="module")
def own(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of its own: a registration without a Service behind it keeps GPU pods waiting everywhere."""
    with control_plane(request.session) as cluster:
        yield cluster
