"""An API server with many policies, namespaces and nodes in it, and a replica that follows it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from bench.creations.registrations import control_plane
from bench.load import many_policies
from bench.measuring.candidates import Server
from bench.measuring.pinned import Pinned
from bench.measuring.setting import Setting
from documents.files import read_catalog
from tests.support import machine
from tests.testcluster.addons import berth, nodes
from tests.testcluster.addons.berth import Berth
from tests.testcluster.addons.installed import install
from tests.testcluster.controlplane.api import Api, Raw
from tests.testcluster.controlplane.cluster import Cluster

CONNECTIONS = 8
"""An API server on two cores takes some 500 creations a second however many there are"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many objects."""

    policies: int
    namespaces: int
    """at least those of ``many_policies``"""
    nodes: int

    @property
    def name(self) -> str:
        """As tables have it."""
        return f"{self.policies:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """A replica, ready, and what it follows."""

    size: Size
    cluster: Cluster
    replica: Berth
    ready: float
    """seconds from its start until it was"""
    resident: float
    """MB then"""

    @property
    def pid(self) -> int:
        return self.replica.process.popen.pid

    def memory(self) -> float:
        """MB (10**6 bytes)."""
        return self.replica.metric("process_resident_memory_bytes") / 1e6

    def server(self) -> Server:
        """For loads."""
        pinned = Pinned(process=self.replica.process.popen, log=self.replica.process.log)
        address, health = (url.partition("//")[2] for url in (self.replica.url, self.replica.health))
        return Server(name=self.size.name, address=address, health=health, ca=self.replica.ca, process=pinned)


@contextmanager
def following(setting: Setting, size: Size) -> Iterator[Following]:
    """A control plane of its own. Raises BenchError where one can't be had."""
    with control_plane(setting) as cluster:
        kubeconfig = install(cluster)
        fill(cluster.api, size, setting.folder / f"live-{size.policies}")
        yield started(cluster, size, kubeconfig, setting.cores.server)


def started(cluster: Cluster, size: Size, kubeconfig: Path, core: int | None = None, name: str = "live") -> Following:
    """A new replica, once it is ready; then pinned to a core, if one is given."""
    begun = time.time()
    replica = berth.serve(cluster, name, kubeconfig)
    (serving,) = replica.events("serving")
    ready = datetime.fromisoformat(serving["time"]).timestamp() - begun
    if core is not None:
        os.sched_setaffinity(replica.process.popen.pid, {core})
    return Following(size=size, cluster=cluster, replica=replica, ready=ready, resident=machine.resident(replica.process.popen.pid))


def fill(api: Api, size: Size, folder: Path) -> None:
    """The policies of ``many_policies``, its namespaces and more, and nodes of every kind that the test cluster knows."""
    folder.mkdir()
    many_policies.write(size.policies, folder)
    namespaces = [*_read(folder / "namespaces.yaml")]
    namespaces += [_namespace(number) for number in range(len(namespaces), size.namespaces)]
    policies = (value for file in sorted((folder / "policies").glob("*.yaml")) for value in _read(file))
    for values in (namespaces, policies, fleet(size.nodes)):
        _create(api, values)


def fleet(number: int) -> Iterator[Raw]:
    """Nodes in turn of each kind, with the labels that a cloud adds to what the GPU Operator writes."""
    kinds = nodes.bare_metal(read_catalog([]))
    for i in range(number):
        node: Raw = json.loads(json.dumps(kinds[i % len(kinds)].manifest()))
        name = f"ip-10-{i >> 16}-{i >> 8 & 255}-{i & 255}.ec2.internal"
        node["metadata"]["name"] = name
        node["metadata"]["labels"] |= {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/region": "us-west-2",
            "topology.kubernetes.io/zone": f"us-west-2{'abcd'[i % 4]}",
            "topology.k8s.aws/zone-id": f"usw2-az{i % 4}",
            "example.com/rack": f"rack-{i // 16}",
            "example.com/serial": f"{i * 7919:012}",
        }
        yield node


def _namespace(number: int) -> Raw:
    metadata = {"name": f"plain-{number:05}", "labels": {"unit": f"plain-{number:05}", "environment": "test"}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _read(file: Path) -> Iterator[dict[str, Any]]:
    return (value for value in yaml.load_all(file.read_text(), yaml.CSafeLoader) if value)


def _create(api: Api, values: Iterable[Raw]) -> None:
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for _ in pool.map(api.create, values):
            pass  # raises what a creation has raised
