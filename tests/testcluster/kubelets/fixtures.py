"""A rig for tests: skipped aloud where real kubelets can't run, logs kept where a test has failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.testcluster import programs
from tests.testcluster.fixtures import MISSED
from tests.testcluster.go_build import NoGo
from tests.testcluster.images import archives, small_image
from tests.testcluster.images.store import NoImage
from tests.testcluster.kubelets import possible
from tests.testcluster.kubelets.rig import Rig
from tests.testcluster.kubelets.starting import rigged
from tests.testcluster.programs import NoProgram


@pytest.fixture(scope="module")
def kubelets(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """Three nodes with a control plane of their own, which have ``localhost/answering:1``; ``load`` brings other images."""
    images = needs_kubelets(request.config)
    before = request.session.testsfailed
    with rigged(*images, keep=lambda: request.session.testsfailed > before) as rig:
        yield rig


def skip_aloud(config: pytest.Config, reason: str) -> NoReturn:
    """In the summary of the run too."""
    config.stash.setdefault(MISSED, []).append(f"not tried with real kubelets and containers: {reason}")
    pytest.skip(reason)


def needs_kubelets(config: pytest.Config) -> tuple[Path, ...]:
    """Builds what is not there, and gives the archives of the images that every rig of a test has. Where real kubelets can't run the test
    is skipped, and the run's summary says so."""
    reason = possible.missing()
    if reason is None:
        try:
            for program in (*programs.PROGRAMS, *programs.ON_A_NODE):
                programs.path(program.name)
            return archives.pause(), small_image.answering()
        except (NoProgram, NoGo, NoImage) as error:
            reason = str(error)
    skip_aloud(config, reason)
