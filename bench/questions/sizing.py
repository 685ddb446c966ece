"""How many replicas does a cluster need, and do many policies, namespaces and nodes make a replica slow to start or large?

Figures are CPU and memory of a replica that follows a real API server, both calls of each pod, which other users of the machine do not
change. From them follow requests and replicas: all but one must carry all pods, and none is planned to use more than ``PLANNED`` of a core.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from bench.harness.creations import create
from bench.harness.following import FollowingReplica, control_plane, fill, started
from bench.harness.setting import BenchSetting
from bench.inputs.bodies import NAMESPACES
from policies.policy import API_VERSION
from tests.support import machine, results_page
from tests.support.machine import BenchError, cpu_seconds
from tests.testcluster.addons import berth
from tests.testcluster.addons.installed import install
from tests.testcluster.controlplane.cluster import Cluster

LOADS = {"job": "alike: the pods of one Job", "mixed": "1,000 pods of 60 workloads", "unlike": "all unlike in what is read"}
POLICIES, NODES = (100, 1_000), 1_000
PODS, ROUNDS, WRITERS = 1_000, 3, 4
"""So few writers that a replica gets one review at a time: many at once cost it less each."""
PLANNED = 0.7
"""of a core: with more, answers wait for each other"""
LEAST = 3
"""replicas: one is replaced while another fails"""
MOST_MB = 150.0
"""with a thousand policies, namespaces and nodes"""


def need(rate: float, each: float) -> tuple[int, float]:
    """Return the replicas for so many pods a second, each of so many CPU seconds, and the millicores of each while one is gone."""
    replicas = max(LEAST, math.ceil(rate * each / PLANNED) + 1)
    return replicas, rate * each / (replicas - 1) * 1000


def run(setting: BenchSetting) -> Iterator[str]:
    yield "A replica that follows an API server, policies and nodes of bench/inputs/many_policies.py; pods are created there by dry runs of"
    yield f"{WRITERS} writers, and both calls of each reach it over TLS. CPU is the replica's, user and system, for 1,000 pods."
    yield ""
    memory: list[Sequence[str]] = []
    nodes = setting.pick(NODES, 10)
    for policies in setting.pick(POLICIES, (10,)):
        with control_plane(setting) as cluster:
            kubeconfig = install(cluster)
            fill(cluster.api, setting.folder / f"sized-{policies}", policies=policies, number_of_nodes=nodes)
            following = started(cluster, kubeconfig)
            resident = machine.resident(following.pid)
            namespace = berth.create_namespace(cluster, "sized", {berth.SCOPE: "sized"})
            berth.register(cluster, berth.manifests(following.replica, scope="sized"), following.replica, namespace)
            cluster.wait_for(lambda: _has_statuses(cluster), "the status of every policy to be written")
            costs = {load: _costs(following, setting, load) for load in LOADS}
            most = machine.resident(following.pid)
        memory.append((f"{policies:,}", f"{nodes:,}", f"{following.ready:.1f}", f"{resident:.0f}", f"{most:.0f}"))
        yield f"With {policies:,} policies and {nodes:,} nodes:"
        yield ""
        rows = [(LOADS[load], *(f"{pick(each) * 1000:.2f}" for pick in (min, statistics.median, max))) for load, each in costs.items()]
        yield from (*results_page.table(("pods", "CPU s for 1,000, least", "median", "most"), rows), "")
    yield from (*results_page.table(("policies", "nodes", "s until ready", "MB when ready", "MB after the loads"), memory), "")
    claim = f"{policies:,} policies, {NAMESPACES:,} namespaces, {nodes:,} nodes: at most {MOST_MB:.0f} MB"
    yield from (results_page.shown(claim, f"{most:.0f} MB", held=most <= MOST_MB), "")
    yield f"So, where one replica is gone and none of the others is to use more than {PLANNED:.0%} of a core:"
    yield ""
    header = ("pods/s", "all alike: replicas", "millicores of each", "all unlike: replicas", "millicores of each")
    alike, unlike = (statistics.median(costs[load]) for load in ("job", "unlike"))  # with most policies
    needs = {rate: (*need(rate, alike), *need(rate, unlike)) for rate in (50, 100, 200, 500, 1_000)}
    yield from results_page.table(header, [(f"{rate:,}", *(f"{number:.0f}" for number in cells)) for rate, cells in needs.items()])


def _has_statuses(cluster: Cluster) -> bool:
    return all(value.get("status") for kind in ("ClusterGPUPolicy", "GPUPolicy") for value in cluster.api.list(API_VERSION, kind))


def _costs(following: FollowingReplica, setting: BenchSetting, load: str) -> list[float]:
    """Return the CPU seconds for a pod, of each round; a round before them is not counted."""

    def answers() -> float:
        return sum(following.replica.metric("berth_requests_total", phase=phase) for phase in ("mutate", "validate"))

    pods, costs = setting.pick(PODS, PODS // 20), []
    for _ in range(setting.pick(ROUNDS, 1) + 1):
        answered, before = answers(), cpu_seconds(following.pid)
        file = setting.bodies(f"{load}.pods")
        created = create(following.cluster.api, file, "sized", writers=WRITERS, calls=pods, dry_run=True)
        costs.append((cpu_seconds(following.pid) - before) / pods)
        if created.failed or answers() - answered < 2 * pods:
            raise BenchError(f"{created.failed} of {pods} pods failed, {answers() - answered:.0f} calls: {created.message}")
    return costs[1:]
