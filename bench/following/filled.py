"""A replica beside a real control plane that is full of GPU pods, and calls of it at fixed times: what else is at work there is measured by
what these calls notice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.following.cluster import CONNECTIONS, Following, Size, fleet, started
from bench.load.arrivals import Arrivals, Arriving
from bench.measuring.pinned import on_core
from bench.measuring.setting import Setting
from tests.support.machine import BenchError
from tests.testcluster.addons import berth, installed
from tests.testcluster.addons.berth import SCOPE, create_namespace
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

EACH = 4
"""Pods of a Job."""
SECONDS, CALLS = 20.0, 300.0
"""Of one round of calls at fixed times; calls a second."""
URGENT = -15
"""Nice value of what makes the calls: it shares its core with the control plane and what else is at work, and is not to be late itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What is measured. ``name``: the value of the label by which its namespaces are judged."""

    cluster: Cluster
    replica: Following
    kubeconfig: Path
    setting: Setting
    name: str

    def policy(self, name: str, spec: Raw) -> None:
        """Apply a ClusterGPUPolicy."""
        value = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": spec}
        reply = self.cluster.api.apply(value)
        if not reply.ok:
            raise BenchError(reply.message)

    def arrivals(self) -> Arrivals:
        """Answers of the replica to calls at fixed times."""
        seconds = 1.5 if self.setting.scale.quick else SECONDS
        bodies, core = self.setting.bodies("mixed"), self.setting.cores.load
        return Arriving(self.replica.server(), bodies, core, rate=CALLS, seconds=seconds, nice=URGENT).result()


def filled(cluster: Cluster, setting: Setting, name: str, specs: Mapping[str, Raw]) -> Filled:
    """Return a replica with these policies, registered, and a kubeconfig of the audit's account."""
    kubeconfig = installed.install(cluster)
    own = setting.folder / f"{name}.kubeconfig"
    installed.write_kubeconfig(own, cluster, installed.token(cluster, account=installed.AUDITOR))
    replica = started(cluster, Size(policies=len(specs), namespaces=0, nodes=0), kubeconfig, setting.cores.server, name)
    world = Filled(cluster=cluster, replica=replica, kubeconfig=own, setting=setting, name=name)
    for policy, spec in specs.items():
        world.policy(policy, spec)
    probe = create_namespace(cluster, "probe", {SCOPE: name})
    berth.register(cluster, berth.manifests(replica.replica, scope=name, kubeconfig=kubeconfig), replica.replica, probe)
    return world


def fill(world: Filled, jobs: int, namespaces: int, nodes: int) -> None:
    """Create nodes, namespaces and Jobs with their pods, which the replica admits."""
    api, names = world.cluster.api, [node["metadata"]["name"] for node in fleet(nodes)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for _ in pool.map(api.create, fleet(nodes)):
            pass
        teams = list(pool.map(lambda number: create_namespace(world.cluster, f"team-{number}", {SCOPE: world.name}), range(namespaces)))

        def job(number: int) -> None:
            """With its pods, which are bound as a scheduler binds them."""
            namespace, name, gpus = teams[number % namespaces], f"train-{number}", str(1 + number % 8)
            containers = [{"name": "c", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}}]
            spec = {"restartPolicy": "Never", "containers": containers}
            made = api.create(
                {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": {"spec": spec}}}, namespace
            )
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": made["metadata"]["uid"], "controller": True}
            for index in range(EACH):
                pod = {"name": f"{name}-{index}", "ownerReferences": [owner]}
                api.create({"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": spec}, namespace)
                target = {"apiVersion": "v1", "kind": "Node", "name": names[(number * EACH + index) % nodes]}
                binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["name"]}, "target": target}
                path = f"/api/v1/namespaces/{namespace}/pods/{pod['name']}/binding"
                reply = api.call("POST", path, binding)
                if not reply.ok:
                    raise BenchError(reply.message)

        for _ in pool.map(job, range(jobs)):
            pass  # raises what a creation has raised


@contextmanager
def busy(core: int) -> Iterator[None]:
    """Keep a core at work with a program that knows nothing of the cluster."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=on_core(core))
    try:
        yield
    finally:
        process.kill()
        process.wait()
