"""What tests of following need: pauses of a test, and one control plane for those that need a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.watch import backoff, reflector
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.starting import apply_crds
from tests.testcluster.fixtures import control_plane

CRDS = Path(__file__).parent.parent.parent / "deploy" / "crds"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are tried again after milliseconds: what is tested is what comes of it."""
    monkeypatch.setattr(backoff, "FIRST", 0.005)
    monkeypatch.setattr(backoff, "LONGEST", 0.05)
    monkeypatch.setattr(reflector, "ABSENT", 0.05)


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Of this module alone: its API server is killed. Without kubelets."""
    with control_plane(request.session, Options(kubelets=False, controllers="namespace-controller")) as started:
        apply_crds(started.api, sorted(CRDS.glob("*.yaml")), started.processes)
        yield started
