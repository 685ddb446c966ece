"""Do many policies, namespaces and nodes make a replica slow to start, large, or slow to follow? It follows a real API server."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

from bench.harness.following import ClusterSize, Following, control_plane, fill, started
from bench.harness.setting import BenchSetting
from bench.inputs import bodies
from tests.support import results_page
from tests.support.cluster.policy_writes import LABEL, follow, quantile, writes
from tests.support.cluster.replicas import Caller, asking
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.addons.installed import install

BARRED = ClusterSize(policies=1_000, namespaces=1_000, nodes=1_000)
"""for which there is a bar"""
SIZES = (
    ClusterSize(policies=10, namespaces=1_000, nodes=10_000), BARRED, ClusterSize(policies=10_000, namespaces=10_000, nodes=10_000)
)  # fmt: skip
QUICK_SIZES = tuple(ClusterSize(policies=number, namespaces=1_000, nodes=100) for number in (10, 100))
MOST_MB = 150
HEADER = (
    "policies", "namespaces", "nodes", "s until ready", "first review of a namespace ms", "MB when ready", "after reviews", "after changes",
    "followed p50 ms", "p99 ms", "longest review ms",
)  # fmt: skip


def run(setting: BenchSetting) -> Iterator[str]:
    """Yield the section."""
    number = setting.pick(200, 8)
    yield "A replica follows an API server with so many policies (bench/inputs/many_policies.py), namespaces and nodes. It is ready once"
    yield f"all are compiled. Then come reviews of a thousand namespaces, then {number} changes of policies and of a namespace's label,"
    yield "each waited for; meanwhile it writes the statuses of its policies, 20 a second."
    yield ""
    rows, verdicts = [], []
    for size in setting.pick(SIZES, QUICK_SIZES):
        with control_plane(setting) as cluster:
            kubeconfig = install(cluster)
            fill(cluster.api, size, setting.folder / f"live-{size.policies}")
            following = started(cluster, size, kubeconfig, setting.cores.server)
            first, memory = _first_review(following, setting), [following.resident, following.memory()]
            times = _follow(following, number)
            memory.append(following.memory())
        counts = (f"{size.policies:,}", f"{size.namespaces:,}", f"{size.nodes:,}")
        cells = (*(f"{mb:.0f}" for mb in memory), *(f"{seconds * 1000:.0f}" for seconds in times))
        rows.append((*counts, f"{following.ready:.1f}", f"{first * 1000:.1f}", *cells))
        if size == BARRED:
            claim = f"{size.policies:,} policies, namespaces and nodes: at most {MOST_MB} MB"
            verdicts.append(results_page.shown(claim, f"{max(memory):.0f} MB", max(memory) <= MOST_MB))
    yield from (*results_page.table(HEADER, rows), "", *verdicts)


def _first_review(following: Following, setting: BenchSetting) -> float:
    """Send one pod to each namespace; return the median time in seconds."""
    caller = Caller(following.replica, "default")
    lines = setting.bodies("spread").read_bytes().splitlines()
    answers = [caller.ask(bodies.with_number(line, number)) for number, line in enumerate(lines)]
    caller.close()
    assert {answer.status for answer in answers} == {200}
    return quantile([answer.received - answer.sent for answer in answers], 0.5)


def _follow(following: Following, number: int) -> tuple[float, float, float]:
    """Make changes, one after the other; return p50 and p99 of the seconds to a decision by it, and the longest review around any."""
    following.cluster.api.close()  # the API server closes connections that were idle for minutes
    namespace = create_namespace(following.cluster, "followed", {LABEL: "followed"})
    seconds: list[float] = []
    longest = 0.0
    with asking([following.replica], namespace) as threads:
        time.sleep(1)  # the namespace is new
        before = threads[0].answers[-1].grace
        for write in itertools.islice(writes(namespace, before), number):
            seconds += follow(following.cluster.api, write, threads, before).by_replica
            longest = max(longest, *(answer.received - answer.sent for answer in list(threads[0].answers)))
            before = write.grace
    return quantile(seconds, 0.5), quantile(seconds, 0.99), longest
