"""A cluster for tests: skipped aloud where there is no Go, failed for that on a build machine, logs kept where a test has failed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.testcluster import programs
from tests.testcluster.cluster import Cluster, Options
from tests.testcluster.programs import NoProgram
from tests.testcluster.starting import running

MISSED = pytest.StashKey[list[str]]()


@contextmanager
def control_plane(session: pytest.Session, options: Options | None = None) -> Iterator[Cluster]:
    """A cluster whose logs stay, and are named, when a test has failed."""
    needs_programs(session.config)
    before = session.testsfailed
    with running(options, keep=lambda: session.testsfailed > before) as cluster:
        yield cluster


def needs_programs(config: pytest.Config) -> None:
    """Builds what is not there. Where it can't be had the test is skipped, and the run's summary says so; on a build machine it fails."""
    try:
        for program in programs.PROGRAMS:
            programs.path(program.name)
    except NoProgram as error:
        reason = f"this test runs a real control plane. {error}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        config.stash.setdefault(MISSED, []).append(reason)
        pytest.skip(reason)
