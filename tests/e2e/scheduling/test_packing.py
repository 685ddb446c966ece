"""The profile that `berth export scheduler` prints, by a real kube-scheduler beside the cluster's own: how many whole nodes stay free."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import NamedTuple

import pytest
import yaml

from cli.inspect.export import NAME, configuration
from tests.e2e.scheduling.nodes_as_objects import NAMESPACE, cleared, decided, made
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.testcluster import programs
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import free_port
from tests.testcluster.controlplane.starting import http_ok

GPU = "nvidia.com/gpu"
DEVICES = 8
"""of a node"""
NODES, PODS = count(8, 64), count(50, 500)
SIZES = (1, 1, 1, 1, 2, 2, 4, 8)
"""of pods, in GPUs: most are small, as in the traces of Philly and Helios; any of 1 to 8 is drawn for one in eight"""
TAKEN = 0.6
"""The part of all devices that pods hold at most: one that would pass it comes once others have ended."""


class Outcome(NamedTuple):
    free: float
    """whole nodes that are free, on the mean after each pod"""
    waiting: int
    """pods that found no place when they came"""


@contextmanager
def packing(cluster: Cluster) -> Iterator[None]:
    """A second scheduler with the exported profile: what its user adds is how it reaches the cluster."""
    port, file = free_port(), cluster.folder / "packing.yaml"
    added = {
        "clientConnection": {"kubeconfig": str(cluster.kubeconfig), "qps": 5000, "burst": 10000},
        "leaderElection": {"leaderElect": False},
    }
    file.write_text(yaml.safe_dump({**configuration(catalog()), **added}))
    files = [f"--{flag}={cluster.kubeconfig}" for flag in ("authentication-kubeconfig", "authorization-kubeconfig")]
    flags = [f"--config={file}", "--bind-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={cluster.folder / 'packing'}"]
    command = [str(programs.path("kube-scheduler")), *flags, *files]
    process = cluster.processes.start("packing", command, dict(os.environ))
    try:
        cluster.wait_for(lambda: http_ok(f"https://127.0.0.1:{port}/healthz"), "the second scheduler")
        yield
    finally:
        cluster.processes.end(process)


def node(name: str) -> Raw:
    amounts = {"cpu": "96", "memory": "1Ti", "pods": "110", GPU: str(DEVICES)}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": []}, "status": status}


def pod(name: str, size: int, scheduler: str) -> Raw:
    resources = {"limits": {GPU: str(size)}, "requests": {GPU: str(size), "cpu": str(2 * size), "memory": f"{16 * size}Gi"}}
    spec = {"schedulerName": scheduler, "containers": [{"name": "main", "image": "train:1", "resources": resources}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def run(cluster: Cluster, scheduler: str) -> Outcome:
    """The same pods in the same order, one after the other; the same ones end, as far as they had a place."""
    random, holding = Random(1), dict[str, tuple[str, int]]()
    objects = [made(cluster, node(f"{scheduler}-{number}")) for number in range(NODES)]
    free, waiting = 0, 0
    for number in range(PODS):
        size = random.choice(SIZES) if random.random() < 0.875 else random.randint(1, DEVICES)
        ends, name = random.random(), f"p{number}"
        while sum(held for _, held in holding.values()) + size > TAKEN * NODES * DEVICES:
            gone = sorted(holding)[int(ends * len(holding))]
            del holding[gone]
            cluster.api.delete(pod(gone, 1, scheduler) | {"metadata": {"name": gone, "namespace": NAMESPACE}}, grace=0)
        cluster.api.create(pod(name, size, scheduler), NAMESPACE)
        found = cluster.wait_for(partial(decided, cluster, name), f"{scheduler} to decide on a pod of {size}")
        if where := found["spec"].get("nodeName"):
            holding[name] = (where, size)
        else:
            waiting += 1
            cluster.api.delete({**found, "apiVersion": "v1", "kind": "Pod"}, grace=0)
        free += NODES - len({place for place, _ in holding.values()})
    cleared(cluster, objects)
    return Outcome(free / PODS, waiting)


def test_whole_nodes_stay_free(plain: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """At least one and a half times as many as with the default profile, and no pod waits that would not have waited there."""
    with packing(plain):
        usual, packed = run(plain, "default-scheduler"), run(plain, NAME)
    waited = f"waiting {usual.waiting} -> {packed.waiting}"
    with capsys.disabled():
        print(f"\n{PODS} pods on {NODES} nodes of {DEVICES}: whole nodes free {usual.free:.1f} -> {packed.free:.1f}, {waited}")
    assert packed.free >= 1.5 * usual.free
    assert packed.free > 0
    assert packed.waiting <= usual.waiting
