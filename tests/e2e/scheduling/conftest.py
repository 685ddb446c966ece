"""A control plane whose nodes are objects alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.scheduling.nodes_as_objects import OPTIONS
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import control_plane


@pytest.fixture(scope="module")
def plain(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A scheduler, and no controller that taints or removes nodes without a kubelet."""
    with control_plane(request.session, OPTIONS) as started:
        yield started
