"""Berth's processes with a pod's service account, which is all that they are given in a cluster."""

from __future__ import annotations

import http.client
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.cluster.service_account_files import mount
from tests.testcluster.addons import installed
from tests.testcluster.addons.berth import environment, logged
from tests.testcluster.calls import PATIENCE, request_once
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

WRAPPER = (sys.executable, "-P", "-m", "tests.support.cluster.in_pod")
CLIENT = {"kubernetes", "aiohttp_retry", "dateutil", "oauthlib", "pydantic", "requests", "requests_oauthlib", "urllib3", "websocket"}
"""The official client and the packages that it imports."""
SECRET: Raw = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "berth-certificates", "namespace": installed.NAMESPACE}}
COMMANDS = {
    "serve": (
        "serve", "--listen=127.0.0.1:0", "--health=127.0.0.1:0", "--cert-secret=berth-system/berth-certificates",
        "--names=berth.berth-system.svc", "--lame-duck=0",
    ),
    "audit": ("audit", "--serve", "--health=127.0.0.1:0"),
    "console": ("console", "--listen=127.0.0.1:0", "--every=0.2"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_process_in_a_pod_does_not_load_the_kubernetes_client(name: str, cluster: Cluster, tmp_path: Path) -> None:
    """The server, the audit and the console become ready with a mounted token, CA and namespace, and never import the official client."""
    installed.install(cluster)
    accounts = {"serve": installed.ACCOUNT, "audit": installed.AUDITOR}
    token = installed.token(cluster, account=accounts[name]) if name in accounts else cluster.api.token
    service = mount(tmp_path, cluster, cluster.api.port, token).environment
    try:
        _run_until_ready(cluster, name, [*WRAPPER, str(tmp_path), *COMMANDS[name], "--in-cluster"], {**environment(), **service})
    finally:
        cluster.api.delete(SECRET)
    loaded = {module.partition(".")[0] for module in (tmp_path / "modules").read_text().split()}
    assert {"aiohttp", "cluster", "policies"} <= loaded
    assert loaded & CLIENT == set()


def _run_until_ready(cluster: Cluster, name: str, command: Sequence[str], variables: dict[str, str]) -> None:
    """Start a process, wait until its /readyz answers 200, and have it stop by itself."""
    process = cluster.processes.start(f"pod-{name}", command, variables)

    def ready() -> bool:
        process.check()
        listening = [event for event in logged(process.log, process.begins) if event["event"] == "listening"]
        if not listening:
            return False
        port = int((listening[0].get("listenHealth") or listening[0]["listen"]).rpartition(":")[2])
        return request_once(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE), "GET", "/readyz").status == 200

    try:
        cluster.wait_for(ready, f"{name} to be ready")
        process.signal(signal.SIGTERM)
        assert process.popen.wait(PATIENCE) == 0
    finally:
        cluster.processes.end(process)
