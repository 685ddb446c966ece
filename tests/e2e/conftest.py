"""A control plane for tests of faults, and calls that go on while something breaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.faults.load import Load, under_load
from tests.e2e.faults.world import OPTIONS, World, built
from tests.testcluster.fixtures import control_plane


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A control plane to be broken, and a replica that follows it through a proxy."""
    with control_plane(request.session, OPTIONS) as started, built(started) as it:
        yield it


@pytest.fixture
def load(world: World) -> Iterator[Load]:
    """While a test runs; nothing of it was wrong."""
    with under_load(world.api, world.replica, world.marks) as it:
        yield it
    world.settled(it)
    world.assert_sound(it)
