"""A HorizontalPodAutoscaler on CPU, with metrics-server and real kubelets: replicas come with the load and go with it.

make test has of it that the chart renders one (``tests/deploy/test_workload.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.e2e.installation import metrics_server
from tests.e2e.installation.arrivals import Arrivals, arriving
from tests.e2e.installation.installed import Installation
from tests.support.counts import only_in_prove
from tests.testcluster.addons.helm import RELEASE
from tests.testcluster.addons.installed import NAMESPACE

LEAST, MOST = 2, 6
REQUESTED = 40
"""millicores: so few that a load which the rig's API server can carry is several times what the target allows two replicas"""
TARGET = 70
CALM, BUSY = 4.0, 100.0
"""GPU pods a second"""
BEHAVIOR = '{"scaleDown": {"stabilizationWindowSeconds": 15}}'
"""Five minutes as it comes, which only makes the test longer."""
MINUTES = 10
"""Metrics are read every fifteen seconds, and the autoscaler looks as often."""
OPTIONS = (
    "--set",
    f"autoscaling.enabled=true,autoscaling.minReplicas={LEAST},autoscaling.maxReplicas={MOST}",
    "--set",
    f"autoscaling.targetCPUUtilizationPercentage={TARGET},resources.requests.cpu={REQUESTED}m",
    "--set-json",
    f"autoscaling.behavior={BEHAVIOR}",
)
LIBRARY = ("--set", "library.policies={berth-default},library.mode=Enforce")


@only_in_prove
def test_replicas_come_and_go_with_the_load(installation: Installation, team: str) -> None:
    """More under load, as few as before without it; no creation fails meanwhile, and none is unjudged."""
    metrics_server.start(installation.rig)
    installation.install(*OPTIONS, "--wait")
    installation.upgrade(*OPTIONS, *LIBRARY, "--wait")
    installation.rig.cluster.wait_for(lambda: installation.is_judged(team), "a GPU pod to be admitted with what policies add")
    _until(installation, lambda: wanted(installation) == LEAST and installation.settled(LEAST), f"{LEAST} replicas")
    with arriving(installation.api, team, BUSY) as busy:
        _until(installation, lambda: wanted(installation) > LEAST, "more replicas to be wanted")
        _until(installation, lambda: wanted(installation) > LEAST and installation.settled(wanted(installation)), "them to be ready")
        before = installation.metric("berth_requests_total")
        time.sleep(60)
        most = wanted(installation)
        shares = sorted(now - before.get(name, 0.0) for name, now in installation.metric("berth_requests_total").items())
        print(f"at {BUSY:.0f} pods/s: {most} replicas, {told(installation)}; calls of each within a minute: {shares}")
    with arriving(installation.api, team, CALM) as after:
        _until(installation, lambda: wanted(installation) == LEAST and installation.settled(LEAST), f"{LEAST} replicas again")
        print(f"at {CALM:.0f} pods/s: {LEAST} replicas again, {told(installation)}")
    print(f"busy: {busy}\nafter: {after}")
    assert most > LEAST
    assert failed(busy, after) == []
    assert busy.unpoliced() == after.unpoliced() == 0


def wanted(installation: Installation) -> int:
    """Replicas, as the autoscaler has decided."""
    found = installation.api.get("apps/v1", "Deployment", RELEASE, NAMESPACE)
    assert found is not None
    return int(found["spec"]["replicas"])


def told(installation: Installation) -> str:
    """What the autoscaler goes by."""
    used = metrics_server.usage(installation.rig, NAMESPACE) or {}
    return f"millicores of {REQUESTED} requested: {sorted(round(one, 1) for one in used.values())}"


def failed(*loads: Arrivals) -> list[str]:
    return [one for load in loads for one in load.failed()]


def _until(installation: Installation, found: Callable[[], bool], what: str) -> None:
    installation.rig.cluster.wait_for(found, what, MINUTES * 60)
