"""One real control plane for all end-to-end tests of a run (two under ``pytest -n 2``), and namespaces of it for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from tests.e2e.faults_load import Load, under_load
from tests.e2e.faults_world import OPTIONS, World, built
from tests.random_worlds import catalog
from tests.testcluster import nodes
from tests.testcluster.berth import create_namespace
from tests.testcluster.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

__all__ = ["NewNamespace", "cluster", "control_plane", "new_namespace"]
NewNamespace = Callable[..., str]
_number = count(1)
SHARED = Options(apiserver=("--feature-gates=TaintTolerationComparisonOperators=true",))
"""Tolerations Gt and Lt (KEP-5471), alpha in Kubernetes 1.36"""


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Shared, with the nodes of ``nodes.bare_metal``. Tests keep to namespaces of their own, and to a Berth of their own."""
    with control_plane(request.session, SHARED) as started:
        nodes.add(started, *nodes.bare_metal(catalog()))
        yield started


@pytest.fixture
def new_namespace(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[NewNamespace]:
    """Makes namespaces, ``new_namespace({label: value})``, named after the test. Afterwards they are deleted with all in them."""
    made: list[str] = []

    def make(labels: dict[str, str] | None = None) -> str:
        test = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:40].strip("-")
        made.append(create_namespace(cluster, f"{test}-{next(_number)}", labels))
        return made[-1]

    yield make
    for name in made:
        cluster.api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


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
