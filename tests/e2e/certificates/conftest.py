"""A cluster of its own for each file: there is one registration of the name that Berth may change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.certificates.shared import Installation
from tests.testcluster.addons import installed
from tests.testcluster.controlplane.cluster import Options
from tests.testcluster.fixtures import control_plane


@pytest.fixture(scope="module")
def installation(request: pytest.FixtureRequest) -> Iterator[Installation]:
    with control_plane(
        request.session, Options(kubelets=False, controllers="namespace-controller,clusterrole-aggregation-controller")
    ) as cluster:
        yield Installation(cluster=cluster, kubeconfig=installed.install(cluster))
