"""The release before this one beside this one, on a cluster of their own; and control planes of several releases of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.certificates.shared import Installation
from tests.e2e.versions import previous_release
from tests.e2e.versions.side_by_side import Pair
from tests.support.counts import only_in_prove
from tests.testcluster.addons import installed
from tests.testcluster.controlplane.cluster import Options
from tests.testcluster.fixtures import MISSED, control_plane
from tests.testcluster.programs import CURRENT, OLDER

CONTROLLERS = "namespace-controller,clusterrole-aggregation-controller"


@pytest.fixture(scope="session")
def before(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the release before. Without the history the test is skipped, and the run's summary says so."""
    try:
        return previous_release.unpacked(tmp_path_factory.mktemp("before"))
    except previous_release.NoHistory as error:
        request.config.stash.setdefault(MISSED, []).append(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, before: Path) -> Iterator[Pair]:
    """Both releases may be started on it. What is installed is this one's, as in the midst of an upgrade."""
    with control_plane(request.session, Options(kubelets=False, controllers=CONTROLLERS)) as cluster:
        yield Pair(installation=Installation(cluster=cluster, kubeconfig=installed.install(cluster)), before=before)


@pytest.fixture(scope="module", params=[CURRENT, *(pytest.param(release, marks=only_in_prove) for release in OLDER)])
def release(request: pytest.FixtureRequest) -> Iterator[Installation]:
    """A control plane of one release of Kubernetes, with Berth's kinds and rights as they are installed."""
    options = Options(release=request.param, kubelets=False, controllers=CONTROLLERS)
    with control_plane(request.session, options) as cluster:
        yield Installation(cluster=cluster, kubeconfig=installed.install(cluster))
