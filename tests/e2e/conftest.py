"""One real control plane for all end-to-end tests of a run (two under ``pytest -n 2``), and namespaces of it for each."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from tests.random_worlds import catalog
from tests.testcluster import nodes
from tests.testcluster.berth import create_namespace
from tests.testcluster.cluster import Cluster, Options
from tests.testcluster.programs import NoProgram
from tests.testcluster.starting import running

MISSED = pytest.StashKey[list[str]]()
NewNamespace = Callable[..., str]
_number = count(1)


@contextmanager
def control_plane(session: pytest.Session, options: Options | None = None) -> Iterator[Cluster]:
    """A cluster whose logs stay, and are named, when a test has failed. Without Go: fails on a build machine, is skipped elsewhere."""
    before = session.testsfailed
    try:
        with running(options, keep=lambda: session.testsfailed > before) as cluster:
            yield cluster
    except NoProgram as error:
        reason = f"this test runs a real control plane. {error}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        session.config.stash.setdefault(MISSED, []).append(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Shared, with the nodes of ``nodes.bare_metal``. Tests keep to namespaces of their own, and to a Berth of their own."""
    with control_plane(request.session) as started:
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What was not tried is said where everybody looks."""
    if missed := config.stash.get(MISSED, []):
        terminalreporter.section("NOT TRIED ON A REAL CONTROL PLANE", sep="!", red=True, bold=True)
        terminalreporter.line(missed[0])
