"""A team's namespace of a real cluster, with Berth, and the console beside it in a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.console.desk import Desk
from tests.support.browser import chromium
from tests.support.browser.console import base, console
from tests.support.browser.pages import Watched
from tests.support.browser.webdriver import Browser
from tests.testcluster.addons import berth
from tests.testcluster.addons.berth import SCOPE
from tests.testcluster.addons.installed import install
from tests.testcluster.controlplane.cluster import Cluster


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    with chromium.browser_of(request.config) as found:
        yield found


@pytest.fixture(scope="module")
def desk(request: pytest.FixtureRequest, browser: Browser, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """What somebody has before them: kubectl, and the console in a browser. TEAM of the module is their team, and its namespace."""
    team: str = request.module.TEAM
    kubeconfig = install(cluster)
    folder = tmp_path_factory.mktemp("console")
    berth.create_namespace(cluster, team, {SCOPE: team, "team": team})
    try:
        with (
            console(folder, "--kubeconfig", str(cluster.kubeconfig), "--every", "0.5") as address,
            berth.registered(cluster, team, kubeconfig, "--console-url", base(address)),
        ):
            browser.open(address)
            yield Desk(team=team, cluster=cluster, watched=Watched(browser, base(address)))
    finally:
        cluster.api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}})
