"""A cluster for tests: skipped aloud where there is no Go, failed for that on a build machine, logs kept where a test has failed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import NoReturn

import pytest

from tests.support.generators.random_worlds import catalog
from tests.testcluster import programs, thirdparty
from tests.testcluster.addons import nodes
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.pool import Pool
from tests.testcluster.programs import NoProgram
from tests.testcluster.thirdparty import Sources

_POOL = pytest.StashKey[Pool]()
MISSED = pytest.StashKey[list[str]]()
NewNamespace = Callable[..., str]
CONTROL_PLANE = (*programs.OF_A_RELEASE, "kubectl", "kwok")
"""What every plane is made of. Karpenter and Helm are waited for where they are started."""
_number = count(1)
SHARED = Options(apiserver=("--feature-gates=TaintTolerationComparisonOperators=true",))
"""Tolerations Gt and Lt (KEP-5471), off by default"""


@contextmanager
def control_plane(session: pytest.Session, options: Options | None = None) -> Iterator[Cluster]:
    """A cluster with nothing in it, leased from the planes of this process. Its logs stay, and are named, when a test has failed."""
    chosen = options or Options()
    needs_programs(session.config, release=chosen.release)
    before = session.testsfailed
    with pool(session.config).plane(chosen, lambda: session.testsfailed > before) as cluster:
        yield cluster


def pool(config: pytest.Config) -> Pool:
    """The clusters that this process lends."""
    return config.stash.setdefault(_POOL, Pool())


def needs_programs(config: pytest.Config, names: Iterable[str] = CONTROL_PLANE, release: str = programs.CURRENT) -> None:
    """Builds those that are not there. Where one can't be had the test is skipped, and the run says so; on a build machine it fails."""
    try:
        for name in names:
            programs.path(name, release=release)
    except NoProgram as error:
        not_tried(config, f"this test runs a real control plane, or tools of one. {error}")


def needs_sources(config: pytest.Config, sources: Sources) -> None:
    """Where the archive is not there the test is skipped, and the run says so; on a build machine too, for no registry serves it."""
    if reason := thirdparty.missing(sources):
        config.stash.setdefault(MISSED, []).append(reason)
        pytest.skip(reason)


def not_tried(config: pytest.Config, reason: str) -> NoReturn:
    """The test is skipped, and the run says so at its end; on a build machine it fails."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    config.stash.setdefault(MISSED, []).append(reason)
    pytest.skip(reason)


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
