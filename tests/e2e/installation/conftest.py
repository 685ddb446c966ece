"""Real kubelets, lent to one file after another, with Berth's image on every node."""

from __future__ import annotations

import pytest

from tests.e2e.installation.installed import Installation
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.images import archives
from tests.testcluster.images.store import NoImage
from tests.testcluster.kubelets.fixtures import skip_aloud
from tests.testcluster.kubelets.rig import Rig


@pytest.fixture(scope="module")
def installation(request: pytest.FixtureRequest, kubelets: Rig) -> Installation:
    try:
        archive = archives.berth()
    except NoImage as error:
        skip_aloud(request.config, str(error))
    kubelets.load(archive)
    return Installation(rig=kubelets)


@pytest.fixture(scope="module")
def team(installation: Installation) -> str:
    """A namespace whose pods are judged."""
    return create_namespace(installation.rig.cluster, "team")
