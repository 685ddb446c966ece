"""How many replicas does a cluster need? The CPU that pods cost a replica that follows it, both calls of each, and the memory it holds.

All figures are the process' own, which are the same on a machine that others use too. From them follow requests and replicas: the replicas
must carry all pods while one of them is gone, and none is planned to use more than ``PLANNED`` of its core.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.harness.creations import create
from bench.harness.following import ClusterSize, Following, control_plane, fill, started
from bench.harness.setting import BenchSetting
from policies.policy import API_VERSION
from tests.support import results_page
from tests.support.machine import BenchError, cpu_seconds
from tests.testcluster.addons import berth
from tests.testcluster.addons.installed import install
from tests.testcluster.controlplane.cluster import Cluster

LOADS = {"job": "alike: the pods of one Job", "mixed": "1,000 pods of 60 workloads", "unlike": "all unlike in what is read"}
SIZES = tuple(ClusterSize(policies=number, namespaces=1_000, nodes=1_000) for number in (100, 1_000))
QUICK = (ClusterSize(policies=10, namespaces=1_000, nodes=10),)
PODS, ROUNDS, WRITERS = 1_000, 3, 4
"""So few writers that a replica gets one review at a time: many at once cost it less each."""
REST = 10.0
"""seconds without a call"""
PLANNED = 0.7
"""of a core: with more, answers wait for each other"""
LEAST = 3
"""replicas: one is replaced while another fails"""
RATES = (50, 100, 200, 500, 1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaNeed:
    """What a rate requires."""

    replicas: int
    millicores: float
    """of each, while one is gone"""


def need(rate: float, each: float) -> ReplicaNeed:
    """Return the need of so many pods a second, each of so many CPU seconds."""
    replicas = max(LEAST, math.ceil(rate * each / PLANNED) + 1)
    return ReplicaNeed(replicas=replicas, millicores=rate * each / (replicas - 1) * 1000)


def run(setting: BenchSetting) -> Iterator[str]:
    """Yield the section."""
    yield "A replica that follows an API server, policies and nodes of bench/inputs/many_policies.py; pods are created there by dry runs of"
    yield f"{WRITERS} writers, and both calls of each reach it over TLS. CPU is the replica's, user and system, for 1,000 pods."
    yield ""
    memory: list[tuple[str, ...]] = []
    for size in setting.pick(SIZES, QUICK):
        with control_plane(setting) as cluster:
            kubeconfig = install(cluster)
            if not memory:
                bare = started(cluster, ClusterSize(policies=0, namespaces=0, nodes=0), kubeconfig, name="bare")
                memory.append(_memory(bare))
                cluster.processes.end(bare.replica.process)
            fill(cluster.api, size, setting.folder / f"sized-{size.policies}")
            following = started(cluster, size, kubeconfig, name="sized")
            namespace = berth.create_namespace(cluster, "sized", {berth.SCOPE: "sized"})
            berth.register(cluster, berth.manifests(following.replica, scope="sized"), following.replica, namespace)
            cluster.wait_for(lambda: _has_statuses(cluster), "the status of every policy to be written")
            costs = {load: _costs(following, setting, load) for load in LOADS}
            memory.append(_memory(following))
            before, seconds = cpu_seconds(following.pid), setting.pick(REST, 1.0)
            time.sleep(seconds)
            rest = (cpu_seconds(following.pid) - before) / seconds
        yield f"With {size.policies:,} policies and {size.nodes:,} nodes; nobody calls: {rest:.1%} of a core."
        yield ""
        rows = [(LOADS[load], *(f"{pick(each) * 1000:.2f}" for pick in (min, statistics.median, max))) for load, each in costs.items()]
        yield from (*results_page.table(("pods", "CPU s for 1,000, least", "median", "most"), rows), "")
    yield from (*results_page.table(("policies", "nodes", "MB when ready", "MB after the loads"), memory), "")
    yield f"So, where one replica is gone and none of the others is to use more than {PLANNED:.0%} of a core:"
    yield ""
    header = ("pods/s", "all alike: replicas", "millicores of each", "all unlike: replicas", "millicores of each")
    medians = [statistics.median(costs[load]) for load in ("job", "unlike")]  # with most policies
    needs = {rate: [need(rate, each) for each in medians] for rate in RATES}
    yield from results_page.table(
        header, [(f"{rate:,}", *(cell for n in its for cell in (f"{n.replicas}", f"{n.millicores:.0f}"))) for rate, its in needs.items()]
    )  # fmt: skip


def _has_statuses(cluster: Cluster) -> bool:
    return all(value.get("status") for kind in ("ClusterGPUPolicy", "GPUPolicy") for value in cluster.api.list(API_VERSION, kind))


def _costs(following: Following, setting: BenchSetting, load: str) -> list[float]:
    """Return the CPU seconds for a pod, of each round; a round before them is not counted."""
    pods, costs = setting.pick(PODS, PODS // 20), []
    for _ in range(setting.pick(ROUNDS, 1) + 1):
        answers, before = _answers(following), cpu_seconds(following.pid)
        file = setting.bodies(f"{load}.pods")
        created = create(following.cluster.api, file, "sized", writers=WRITERS, calls=pods, dry_run=True)
        costs.append((cpu_seconds(following.pid) - before) / pods)
        if created.failed or _answers(following) - answers < 2 * pods:
            raise BenchError(f"{created.failed} of {pods} pods failed, {_answers(following) - answers:.0f} calls: {created.message}")
    return costs[1:]


def _answers(following: Following) -> float:
    return sum(following.replica.metric("berth_requests_total", phase=phase) for phase in ("mutate", "validate"))


def _memory(following: Following) -> tuple[str, ...]:
    return f"{following.size.policies:,}", f"{following.size.nodes:,}", f"{following.resident:.0f}", f"{following.memory():.0f}"
