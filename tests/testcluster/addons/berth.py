"""Berth beside a cluster: `berth serve` as a process, and its registration, for all namespaces or for those of one test."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

import cli.main
from tests.testcluster.addons import metrics
from tests.testcluster.calls import PATIENCE, PATIENT, Answer, request_once
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import Process

ROOT = Path(__file__).parents[3]
LIBRARY = ROOT / "policies" / "library"
COMMAND = (sys.executable, "-P", "-m", "cli.main")
SCOPE = "tests.berth.dev/berth"
"""Label of a namespace: which Berth judges its pods. So several can stand beside one another on one cluster."""
PROBE: Raw = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe"},
    "spec": {"containers": [{"name": "c", "image": "probe:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Berth:
    """One replica that serves."""

    name: str
    process: Process
    url: str
    health: str
    ca: Path

    def metric(self, name: str, /, **labels: str) -> float:
        """The sum of a metric's samples that have these labels; 0.0 where there is none."""
        return metrics.total(self.page("/metrics").body.decode(), name, **labels)

    def page(self, path: str) -> Answer:
        """Of its second port."""
        host, _, port = self.health.removeprefix("http://").rpartition(":")
        return request_once(http.client.HTTPConnection(host, int(port), timeout=PATIENCE), "GET", path)

    def events(self, name: str) -> list[Raw]:
        """The lines of its log with this event."""
        return [event for event in logged(self.process.log, self.process.begins) if event["event"] == name]

    def kill(self) -> None:
        """As a machine that goes."""
        self.process.signal(signal.SIGKILL)
        self.process.popen.wait()


Policies = Sequence[Path] | Path
"""Files and folders; or a kubeconfig: policies and facts then come from the cluster (``installed.install``)."""


def serve(cluster: Cluster, name: str, policies: Policies, *options: str, listen: str = "127.0.0.1:0") -> Berth:
    """Started and ready. It ends with the cluster, or by ``cluster.processes.end``. Raises ClusterFailed with the end of its log."""
    process = start(cluster, name, policies, *options, listen=listen)

    def serving() -> Raw | None:
        """Of this start: a Berth of the same name may have written to the log before."""
        process.check()
        return next((event for event in logged(process.log, process.begins) if event["event"] == "serving"), None)

    cluster.wait_for(serving, f"Berth {name} to serve")
    return listening(cluster, name, process)


def start(cluster: Cluster, name: str, policies: Policies, *options: str, listen: str = "127.0.0.1:0") -> Process:
    """Started, and not ready yet."""
    folder = cluster.folder / f"berth-{name}"
    if isinstance(policies, Path):
        paths = ["--kubeconfig", str(policies)]
    else:
        paths = [word for path in policies for word in ("--policies", str(path))]
    where = ["--listen", listen, "--health", "127.0.0.1:0", "--self-signed", str(folder / "tls")]
    folder.mkdir(exist_ok=True)
    command = [*COMMAND, "serve", *paths, *where, "--lame-duck", "0", *PATIENT, *options]
    return cluster.processes.start(f"berth-{name}", command, environment())


def listening(cluster: Cluster, name: str, process: Process) -> Berth:
    """One that was started, ready or not: its ports answer."""

    def found() -> Raw | None:
        process.check()
        return next((event for event in logged(process.log, process.begins) if event["event"] == "listening"), None)

    at = cluster.wait_for(found, f"Berth {name} to listen")
    ca = cluster.folder / f"berth-{name}" / "tls" / "ca.crt"
    return Berth(name=name, process=process, url=at["url"], health=at["health"], ca=ca)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def logged(log: Path, begins: int) -> list[Raw]:
    """Every event from a byte on; a line that is none is of a start that failed."""
    return [found for line in log.read_bytes()[begins:].decode(errors="replace").splitlines() if (found := event(line))]


def event(line: str) -> Raw:
    """A line of the log; empty for one that is no event, or not whole yet."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) and "event" in found else {}


def manifests(
    berth: Berth,
    *,
    scope: str | None = None,
    catalog: Path | None = None,
    kubeconfig: Path | None = None,
    excluded: Sequence[str] = (),
    options: Sequence[str] = (),
) -> list[Raw]:
    """What `berth webhooks` prints for it, with these options; with ``scope`` only for namespaces that carry it as the label SCOPE; with
    ``kubeconfig`` by what the cluster has."""
    files = {"--catalog": catalog, "--kubeconfig": kubeconfig}
    names = [word for name in excluded for word in ("--exclude-namespace", name)]
    given = [word for flag, file in files.items() if file is not None for word in (flag, str(file))]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = cli.main.main(["webhooks", "--url", berth.url, "--ca", str(berth.ca), *given, *names, *options])
    assert code == 0, f"berth webhooks ended with exit code {code}"
    values = [value for value in yaml.load_all(printed.getvalue(), yaml.CSafeLoader) if value]
    if scope is not None:
        for value in values:
            value["metadata"]["name"] += f"-{scope}"
            for webhook in value["webhooks"]:
                webhook["namespaceSelector"]["matchLabels"] = {SCOPE: scope}
    return values


def register(cluster: Cluster, values: Sequence[Raw], berth: Berth, namespace: str, *, whole: bool = False) -> None:
    """Apply the registration, and wait until a dry run in ``namespace`` has reached both paths.

    Unless ``whole`` is set, webhooks for kinds that the API server does not serve are left out: it never calls them, and their conditions
    are most of what it compiles.
    """
    served = {"", "*", *(group["name"] for group in cluster.api.call("GET", "/apis").body["groups"])}
    for value in values:
        webhooks = [
            webhook for webhook in value["webhooks"] if whole or any(not served.isdisjoint(rule["apiGroups"]) for rule in webhook["rules"])
        ]
        reply = cluster.api.apply({**value, "webhooks": webhooks})
        assert reply.ok, reply.message
    cluster.wait_for(lambda: _reached(cluster, berth, namespace), f"the API server to call Berth {berth.name}")


def _reached(cluster: Cluster, berth: Berth, namespace: str) -> bool:
    cluster.api.try_create(PROBE, namespace, dry_run=True)
    return all(berth.metric("berth_requests_total", phase=phase) > 0 for phase in ("mutate", "validate"))


@contextlib.contextmanager
def registered(
    cluster: Cluster, name: str, policies: Policies, *options: str, excluded: Sequence[str] = (), by: Sequence[str] = ()
) -> Iterator[Berth]:
    """A Berth of its own for the namespaces with the label SCOPE=``name`` but those ``excluded``; gone on leaving, its registration
    first. ``by``: options of `berth webhooks`."""
    berth = serve(cluster, name, policies, *options)
    namespace = create_namespace(cluster, f"probe-{name}", {SCOPE: name})
    values = manifests(berth, scope=name, kubeconfig=policies if isinstance(policies, Path) else None, excluded=excluded, options=by)
    try:
        register(cluster, values, berth, namespace)
        yield berth
    finally:
        for value in values:
            cluster.api.delete(value)
        cluster.processes.end(berth.process)
        cluster.api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})


def create_namespace(cluster: Cluster, name: str, labels: dict[str, str] | None = None) -> str:
    """Its name."""
    cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}})
    return name
