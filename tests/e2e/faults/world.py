"""A control plane that is broken on purpose, and a replica that follows it through a proxy; whether the two agree, and how soon."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cluster.watch.kinds import KINDS, Watched
from tests.e2e.faults.load import Load, Questions, sweep
from tests.e2e.faults.marks import LABEL, OWN, RULED, Marks
from tests.support.cluster.collecting_store import digest_of
from tests.support.cluster.faulty_proxy import Proxy
from tests.support.counts import PROVE
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import nodes
from tests.testcluster.addons.berth import SCOPE, Berth, create_namespace, manifests, register, serve
from tests.testcluster.addons.installed import install, token, write_kubeconfig
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.api import Api, Raw
from tests.testcluster.controlplane.cluster import Cluster, Options

NAME = "faults"
WATCH = 5
"""Seconds of a watch: the least that there may be, so that silence is noticed soon"""
LOOK = 0.02 if PROVE else 0.2
"""Seconds between two looks, each of which lists what is stored; a figure is that much too long at most"""
OPTIONS = Options(kubelets=False, controllers="namespace-controller")


@dataclass(kw_only=True)
class World:
    """All that a test of faults needs. Made by ``built``."""

    cluster: Cluster
    proxy: Proxy
    replica: Berth
    kubeconfig: Path
    """the replica's: by way of the proxy"""
    marks: Marks = field(default_factory=Marks)
    _before: Mapping[str, int] = field(default_factory=dict)

    @property
    def api(self) -> Api:
        return self.cluster.api

    def write(self) -> None:
        """Policies are changed, made and deleted, past the proxy. Raises OSError where there is no API server."""
        for how, value in self.marks.change():
            reply = self.api.apply(value) if how == "apply" else self.api.call("DELETE", self.api.path_of(value))
            assert reply.ok, reply.message

    def settled(self, load: Load | None = None, seconds: float = PATIENCE) -> float:
        """Seconds until the replica knows every version of every object that the store has, and decides by the newest policies.
        Then what is stored is judged."""
        begun = time.perf_counter()
        questions = Questions(self.replica)
        try:
            self.until(lambda: self.differences() == [], lambda: f"the replica to know what is stored: {self.differences()}", seconds)
            took = time.perf_counter() - begun
            self.until(lambda: self.decided(questions) == self.marks.newest(), lambda: f"{self.decided(questions)}", 5)
        finally:
            questions.close()
        self._judge(load)
        return took

    def _judge(self, load: Load | None) -> None:
        """A pod may be stored long after it was judged, so what is in the store may be of the time before the one before."""
        since = self._before or self.marks.since()
        self._before = self.marks.since()
        self.marks.settle()
        if load is not None:
            sweep(self.api, load, since)

    def decided(self, questions: Questions) -> Mapping[str, int | None]:
        """By the replica, for a pod in each namespace."""
        return {namespace: questions.ask(namespace)[1] for namespace in self.marks.history}

    def differences(self) -> list[str]:
        """What the replica knows otherwise than the store, kind by kind."""
        known = self.known()
        return [one.kind for one in KINDS if known[one.kind]["digest"] != self._stored(one)]

    def _stored(self, one: Watched) -> str:
        """Its digest; why there is none where the API server can't tell, as for a moment after its start."""
        reply = self.api.call("GET", one.path(one.versions[0]))
        return digest_of(reply.body["items"] if reply.ok else []) if reply.ok or reply.status == 404 else reply.message

    def known(self) -> Mapping[str, Raw]:
        """By kind, as the replica tells it."""
        found: Mapping[str, Raw] = json.loads(self.replica.page("/policies").body)["kinds"]
        return found

    def readyz(self) -> tuple[int, str]:
        """(status, the line on the cluster)"""
        answer = self.replica.page("/readyz")
        return answer.status, next(line for line in answer.body.decode().splitlines() if "cluster:" in line)

    def says(self, *parts: str, seconds: float = PATIENCE) -> str:
        """The line of /readyz once all parts are in it; the replica is ready all the while."""

        def reported() -> bool:
            status, line = self.readyz()
            assert status == 200, line
            return all(part in line for part in parts)

        self.until(reported, lambda: f"/readyz to say {parts}: {self.readyz()}", seconds)
        return self.readyz()[1]

    def until(self, found: Callable[[], bool], what: Callable[[], str], seconds: float = PATIENCE) -> None:
        """Fails where it never comes, or a process ends meanwhile."""
        deadline = time.monotonic() + seconds
        while not found():
            self.cluster.processes.check()
            assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what()}"
            time.sleep(LOOK)

    def resident(self) -> float:
        """MiB of the replica."""
        text = Path(f"/proc/{self.replica.process.popen.pid}/status").read_text()
        return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    def assert_sound(self, load: Load) -> None:
        """Nothing was decided wrongly, and the replica is the process that it was, and has nothing to be ashamed of in its log."""
        assert load.wrong == [], f"{len(load.wrong)} wrong: {load.wrong[:10]}"
        assert load.asked.keys() == {"200"}, load.asked
        assert load.created["stored"] > 0
        self.replica.process.check()
        assert self.replica.events("failed") == []
        assert self.replica.metric("berth_requests_total", decision="unavailable") == 0


@contextmanager
def built(cluster: Cluster) -> Iterator[World]:
    """Berth installed, registered at Fail for three namespaces, and settled."""
    for node in nodes.bare_metal(catalog()):
        cluster.api.create(node.manifest())
    install(cluster)
    marks = Marks()
    for namespace in marks.history:
        create_namespace(cluster, namespace, {SCOPE: NAME, **({LABEL: "yes"} if namespace == RULED else {})})
    for value in (*marks.objects(), _device_class()):
        reply = cluster.api.apply(value)
        assert reply.ok, reply.message
    with Proxy("127.0.0.1", cluster.api.port) as proxy:
        kubeconfig = cluster.folder / "through.kubeconfig"
        write_kubeconfig(kubeconfig, cluster, token(cluster), proxy.port)
        replica = serve(cluster, NAME, kubeconfig, "--watch", str(WATCH))
        register(cluster, manifests(replica, scope=NAME), replica, OWN)
        world = World(cluster=cluster, proxy=proxy, replica=replica, kubeconfig=kubeconfig, marks=marks)
        world.settled()
        try:
            yield world
        finally:
            replica.process.signal(signal.SIGKILL)  # before the proxy goes, or its log fills
            cluster.processes.end(replica.process)


def _device_class() -> Raw:
    """A fact of a kind that others define."""
    spec = {"selectors": [{"cel": {"expression": 'device.driver == "gpu.nvidia.com"'}}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}, "spec": spec}
