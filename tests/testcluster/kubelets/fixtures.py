"""A rig for tests: skipped aloud where real kubelets can't run, logs kept where a test has failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from tests.testcluster import programs
from tests.testcluster.controlplane import restarting
from tests.testcluster.controlplane.pool import Contents
from tests.testcluster.fixtures import MISSED, pool
from tests.testcluster.go_build import NoGo
from tests.testcluster.images import archives, small_image
from tests.testcluster.images.store import NoImage
from tests.testcluster.kubelets import containers, possible
from tests.testcluster.kubelets.rig import Rig
from tests.testcluster.kubelets.starting import rigged
from tests.testcluster.programs import NoProgram


@dataclass(slots=True, kw_only=True)
class KeptRig:
    """A rig, and what was in its store before anybody used it."""

    rig: Rig
    ending: ExitStack
    contents: Contents

    def reset(self) -> None:
        """No pod is left, on the nodes too, and the store is put back. Who makes pods stands still meanwhile."""
        with restarting.paused(self.rig.cluster, "kube-controller-manager"):
            for namespace in self.rig.api.list("v1", "Namespace"):
                self.rig.api.delete_all("v1", "Pod", namespace["metadata"]["name"])
            self.contents.put_back()
            for node in self.rig.nodes.values():
                self.rig.cluster.wait_for(lambda node=node: not containers.running(node.machine), f"{node.name} to be empty")  # type: ignore[misc]


@pytest.fixture(scope="module")
def kubelets(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """Three nodes with a control plane of their own, which have ``localhost/answering:1``; ``load`` brings other images. They are lent to
    one file after another."""
    images = needs_kubelets(request.config)
    before = request.session.testsfailed

    def new() -> KeptRig:
        with ExitStack() as stack:
            rig = stack.enter_context(rigged(*images))
            return KeptRig(rig=rig, ending=stack.pop_all(), contents=Contents.of(rig.cluster))

    with pool(request.config).lent("kubelets", new, lambda: request.session.testsfailed > before) as kept:
        yield kept.rig


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
