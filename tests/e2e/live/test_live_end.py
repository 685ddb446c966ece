"""A replica ends soon after SIGTERM, with exit code 0, whatever state its API server is in."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cluster.faulty_proxy import Proxy
from tests.support.counts import PROVE
from tests.testcluster.addons.berth import Berth, serve
from tests.testcluster.addons.installed import install, token, write_kubeconfig
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

MOMENT = 1.5
"""Seconds at most between the fault and SIGTERM, so that connections are met while they are made, used and given up"""
Fault = Callable[[Cluster, Proxy], None]


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Its API server is stopped and killed."""
    with control_plane(request.session, Options(kubelets=False, controllers="namespace-controller")) as started:
        install(started)
        yield started


def healthy(_plane: Cluster, _proxy: Proxy) -> None:
    """Nothing is wrong."""


def blackholed(_plane: Cluster, proxy: Proxy) -> None:
    proxy.blackhole()


def denying(_plane: Cluster, proxy: Proxy) -> None:
    proxy.deny()
    proxy.cut()


def stopped(plane: Cluster, _proxy: Proxy) -> None:
    plane.named["kube-apiserver"].signal(signal.SIGSTOP)


def killed(plane: Cluster, _proxy: Proxy) -> None:
    """After it was stopped; no other test comes after this one."""
    server = plane.named["kube-apiserver"]
    plane.processes.running.remove(server)
    server.signal(signal.SIGKILL)
    server.popen.wait()


FAULTS: tuple[Fault, ...] = (healthy, blackholed, denying, stopped, killed) if PROVE else (healthy, blackholed, killed)
"""In `make test` a server that is killed denies connections, and silence is that of a black hole."""


def replica(plane: Cluster, proxy: Proxy, name: str) -> Berth:
    """One that follows, through the proxy. A connection that it leaves open when it ends would hold it up for ever."""
    kubeconfig = Path(plane.folder / f"{name}.kubeconfig")
    write_kubeconfig(kubeconfig, plane, token(plane), proxy.port)
    return serve(plane, name, kubeconfig)


def test_a_replica_ends_whatever_its_api_server_does(plane: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Healthy, blackholed, reset, stopped, killed: a moment later SIGTERM ends it with 0, and no connection is left open."""
    monkeypatch.setenv("PYTHONWARNINGS", "error:unclosed:ResourceWarning")
    with Proxy("127.0.0.1", plane.api.port) as proxy:
        replicas = [replica(plane, proxy, f"end-{fault.__name__}") for fault in FAULTS]
        for fault, berth in zip(FAULTS, replicas, strict=True):
            fault(plane, proxy)
            time.sleep(random.uniform(0, MOMENT))
            ends(berth)
            proxy.deny(on=False)
            proxy.blackhole(on=False)


def ends(berth: Berth) -> None:
    berth.process.signal(signal.SIGTERM)
    code = berth.process.popen.wait(PATIENCE)
    assert (code, [event["code"] for event in berth.events("stopped")]) == (0, [0]), berth.process.tail()
    assert "unclosed" not in berth.process.log.read_text()
