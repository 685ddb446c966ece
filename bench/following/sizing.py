"""How many replicas a cluster needs: the CPU that pods cost a replica which follows one, both calls of each, and the memory that it holds.

All figures are the process' own, which are the same on a machine that others use too. From them follow requests and replicas: what is asked
of all must fit into all but one, and no replica is planned to use more than ``PLANNED`` of its core.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.creations.client import Creations, written
from bench.creations.registrations import control_plane
from bench.following.cluster import Following, Size, fill, started
from bench.load import many_policies
from bench.measuring.setting import Setting
from tests.support import results_page
from tests.support.machine import BenchError, cpu_seconds
from tests.testcluster.addons import berth
from tests.testcluster.addons.installed import install
from tests.testcluster.controlplane.cluster import Cluster

LOADS = {"job": "alike: the pods of one Job", "mixed": "1,000 pods of 60 workloads", "unlike": "all unlike in what is read"}
NOTHING = Size(policies=0, namespaces=0, nodes=0)
SIZES = (Size(policies=100, namespaces=1_000, nodes=1_000), Size(policies=1_000, namespaces=1_000, nodes=1_000))
QUICK = (Size(policies=10, namespaces=1_000, nodes=10),)
PODS, ROUNDS, WRITERS = 1_000, 3, 4
"""so few writers that a replica finds one review at a time: many at once cost it less each"""
REST = 10.0
"""seconds without a call"""
PLANNED = 0.7
"""of a core: with more, answers wait for each other"""
LEAST = 3
"""replicas: one is replaced while another fails"""
RATES = (50, 100, 200, 500, 1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a rate asks for."""

    replicas: int
    millicores: float
    """of each, while one is gone"""


def need(rate: float, each: float) -> Need:
    """For so many pods a second, each of so many CPU seconds."""
    used = rate * each
    replicas = max(LEAST, math.ceil(used / PLANNED) + 1)
    return Need(replicas=replicas, millicores=used / (replicas - 1) * 1000)


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    quick = setting.scale.quick
    yield "A replica that follows an API server, policies and nodes of bench/load/many_policies.py; pods are created there by dry runs of"
    yield f"{WRITERS} writers, and both calls of each reach it over TLS. CPU is the replica's, user and system, for 1,000 pods."
    yield ""
    memory: list[tuple[str, ...]] = []
    for size in QUICK if quick else SIZES:
        with control_plane(setting) as cluster:
            kubeconfig = install(cluster)
            if not memory:
                bare = started(cluster, NOTHING, kubeconfig, name="bare")
                memory.append(_memory(bare))
                cluster.processes.end(bare.replica.process)
            fill(cluster.api, size, setting.folder / f"sized-{size.policies}")
            one = started(cluster, size, kubeconfig, name="sized")
            _register(cluster, one)
            cluster.wait_for(lambda: _is_told(cluster), "the status of every policy to be written")
            costs = {load: _costs(one, setting, load, PODS // 20 if quick else PODS, 1 if quick else ROUNDS) for load in LOADS}
            memory.append(_memory(one))
            rest = _at_rest(one, 1.0 if quick else REST)
        yield f"With {size.policies:,} policies and {size.nodes:,} nodes; nobody calls: {rest * 100:.1f} % of a core."
        yield ""
        rows = [(LOADS[load], *(f"{pick(each) * 1000:.2f}" for pick in (min, statistics.median, max))) for load, each in costs.items()]
        yield from results_page.table(("pods", "CPU s for 1,000, least", "median", "most"), rows)
        yield ""
    yield from results_page.table(("policies", "nodes", "MB when ready", "MB after the loads"), memory)
    yield ""
    yield from _needs(statistics.median(costs["job"]), statistics.median(costs["unlike"]))


def _needs(alike: float, unlike: float) -> Iterator[str]:
    """By the last costs, which are those with most policies."""
    yield f"So, where one replica is gone and none of the others is to use more than {PLANNED:.0%} of a core:"
    yield ""
    header = ("pods/s", "all alike: replicas", "millicores of each", "all unlike: replicas", "millicores of each")
    rows = []
    for rate in RATES:
        cells = [(f"{one.replicas}", f"{one.millicores:.0f}") for one in (need(rate, alike), need(rate, unlike))]
        rows.append((f"{rate:,}", *cells[0], *cells[1]))
    yield from results_page.table(header, rows)


def _register(cluster: Cluster, one: Following) -> None:
    namespace = berth.create_namespace(cluster, "sized", {berth.SCOPE: "sized"})
    berth.register(cluster, berth.manifests(one.replica, scope="sized"), one.replica, namespace)


def _is_told(cluster: Cluster) -> bool:
    """Whether nothing is left to be written of what it read at its start."""
    kinds = ("ClusterGPUPolicy", "GPUPolicy")
    return all(value.get("status") for kind in kinds for value in cluster.api.list(many_policies.API_VERSION, kind))


def _costs(one: Following, setting: Setting, load: str, pods: int, rounds: int) -> Sequence[float]:
    """CPU seconds for a pod, of each round; a round before them is not counted."""
    creations, file, found = Creations(one.cluster.api), written(load, setting.folder), []
    for _ in range(rounds + 1):
        asked, before = _answers(one), cpu_seconds(one.pid)
        created = creations.run(file, "sized", writers=WRITERS, count=pods, dry_run=True)
        found.append((cpu_seconds(one.pid) - before) / pods)
        if created.failed or _answers(one) - asked < 2 * pods:
            raise BenchError(f"{created.failed} of {pods} pods failed, {_answers(one) - asked:.0f} calls: {created.said}")
    return found[1:]


def _answers(one: Following) -> float:
    return sum(one.replica.metric("berth_requests_total", phase=phase) for phase in ("mutate", "validate"))


def _memory(one: Following) -> tuple[str, ...]:
    return f"{one.size.policies:,}", f"{one.size.nodes:,}", f"{one.resident:.0f}", f"{one.memory():.0f}"


def _at_rest(one: Following, seconds: float) -> float:
    """Of a core."""
    before, begun = cpu_seconds(one.pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(one.pid) - before) / (time.monotonic() - begun)
