"""The same rollouts and rotations with uvicorn as it comes behind the same chart: what Berth's own server is for."""

from __future__ import annotations

import time
from pathlib import Path

from tests.e2e.installation.arrivals import Arrivals, arriving
from tests.e2e.installation.installed import DEPLOYMENT, RATE, Installation
from tests.support.counts import only_in_prove
from tests.testcluster.addons.installed import NAMESPACE
from tests.testcluster.controlplane.api import STRATEGIC, Raw

ROLLOUTS = 5
SCRIPT = Path(__file__).with_name("stock_uvicorn.py")
POLICIES = ("--set", "library.policies={berth-default},library.mode=Enforce")


@only_in_prove
def test_stock_uvicorn_beside_it(installation: Installation, team: str) -> None:
    """Rolling updates of both, under the same load: none of Berth's creations fails; how many of the other's is printed.

    ``make test`` rolls out Berth's own server (``test_installing``).
    """
    installation.install("--wait")
    installation.upgrade(*POLICIES, "--wait")
    own = _rolled(installation, team)
    _become_stock(installation)
    stock = _rolled(installation, team)
    print(f"Berth's server: {own}\nstock uvicorn:  {stock}\n{stock.failed()[:3]}")
    assert own.failed() == []


def _rolled(installation: Installation, team: str) -> Arrivals:
    installation.settle()
    installation.rig.cluster.wait_for(lambda: installation.is_judged(team), "a GPU pod to be judged")
    with arriving(installation.api, team, RATE) as load:
        for _ in range(ROLLOUTS):
            installation.roll()
        time.sleep(2)
    return load


def _become_stock(installation: Installation) -> None:
    """The script is laid beside the program, and started in its place; uvicorn knows no lame duck."""
    installation.upgrade(*POLICIES, "--set", "lameDuckSeconds=0", "--wait")
    script: Raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stock", "namespace": NAMESPACE}}
    reply = installation.api.apply({**script, "data": {SCRIPT.name: SCRIPT.read_text()}})
    assert reply.ok, reply.message
    container: Raw = {
        "name": "berth",
        "command": ["/opt/berth/bin/python3", f"/stock/{SCRIPT.name}"],
        "volumeMounts": [{"name": "stock", "mountPath": "/stock"}],
    }
    volumes = [{"name": "stock", "configMap": {"name": "stock"}}]
    change = {"spec": {"template": {"spec": {"containers": [container], "volumes": volumes}}}}
    installation.api.patch(DEPLOYMENT, change, content=STRATEGIC)
