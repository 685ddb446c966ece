"""Poisoned policies, by the thousand: no replica goes down, nobody else's pod is decided otherwise, and each of them is named.

In ``make prove`` the figures go into bench/RESULTS.md.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from tests.e2e.poison import replica_log, undisturbed
from tests.e2e.poison.objects import LABEL, NAMESPACES, Poison, poisons, stored_form
from tests.e2e.poison.undisturbed import Watching
from tests.support import results_page
from tests.support.counts import PROVE, count
from tests.testcluster.addons.berth import Berth, serve
from tests.testcluster.addons.installed import install
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.api import Api, Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.etcd import Etcd, store
from tests.testcluster.fixtures import control_plane

CALLS = 100
"""reviews of others that are compared, at least"""
POISONS = count(150, 20_000)
REPLICAS = 2
WRITERS = 4
TAKEN = count(1, 2) * PATIENCE
"""seconds in which all of them must be named"""
DEARER = 10
"""times the CPU of a review that is not theirs, once they are all there"""
UNANSWERED = {429, 500, 503, 504}
"""statuses of an API server that has too much to do"""
MOST_MEMORY = 600 << 20
"""bytes that they may add; the bar of a replica with a thousand policies is 150 MB"""


@dataclass(kw_only=True)
class Poisoned:
    """A cluster on which everything was written, and what was seen meanwhile."""

    cluster: Cluster
    etcd: Etcd
    replicas: list[Berth]
    questions: list[undisturbed.Question]
    before: list[tuple[int, bytes]] = field(default_factory=list)
    sent: list[Poison] = field(default_factory=list)
    denied: Counter[int] = field(default_factory=Counter)
    """by the API server, by status"""
    stored: list[Raw] = field(default_factory=list)
    """as the API server gives them"""
    cost: float = 0.0
    """seconds of a replica's CPU for an answer, before"""
    usual: float = 0.0
    """seconds of the median answer before"""
    seconds: list[float] = field(default_factory=list)
    """of each answer while poison came"""
    others: list[str] = field(default_factory=list)
    away: int = 0
    """503: a replica says that it is behind; the API server asks again"""
    written_in: float = 0.0
    named_after: float = 0.0
    """seconds from the last write to the last being named by the slowest replica"""
    memory: list[tuple[int, int]] = field(default_factory=list)
    """of each replica, before and after"""


@pytest.fixture(scope="module")
def poisoned(request: pytest.FixtureRequest) -> Iterator[Poisoned]:
    """Everything is written while both replicas are asked."""
    with control_plane(request.session, Options(kubelets=False, controllers="namespace-controller")) as cluster, store(cluster) as etcd:
        kubeconfig = install(cluster)
        undisturbed.prepare(cluster.api, NAMESPACES, LABEL)
        replicas = [serve(cluster, f"poisoned-{number}", kubeconfig) for number in range(REPLICAS)]
        found = Poisoned(cluster=cluster, etcd=etcd, replicas=replicas, questions=undisturbed.questions())
        _look_before(found)
        with undisturbed.watching(replicas, found.questions, found.before) as threads:
            _write(found)
            _take(found, threads)
            while sum(len(thread.seen.seconds) for thread in threads) <= CALLS and all(thread.is_alive() for thread in threads):
                time.sleep(0.1)
        found.memory = [(before, replica_log.memory(one)) for one, (before, _) in zip(replicas, found.memory, strict=True)]
        found.seconds = [seconds for thread in threads for seconds in thread.seen.seconds]
        found.others = [other for thread in threads for other in thread.seen.others]
        found.away = sum(thread.seen.away for thread in threads)
        yield found


def _look_before(found: Poisoned) -> None:
    found.before = undisturbed.answers(found.replicas[0], found.questions)
    with undisturbed.watching(found.replicas, found.questions, found.before) as threads:
        time.sleep(2)
    assert [thread.seen.others for thread in threads] == [[]] * REPLICAS
    found.usual = statistics.median(seconds for thread in threads for seconds in thread.seen.seconds)
    found.cost = undisturbed.cost(found.replicas[0], found.questions)
    found.memory = [(replica_log.memory(one), 0) for one in found.replicas]


def _write(found: Poisoned) -> None:
    """By the API server on a few connections, and into etcd beside them."""
    begun = time.perf_counter()
    found.sent = list(poisons(7, POISONS))
    straight = [(one.key, stored_form(one)) for one in found.sent if one.straight]
    with ThreadPoolExecutor(WRITERS + 1) as pool:
        beside = pool.submit(found.etcd.put_all, straight)
        statuses = pool.map(lambda one: _tried(found.cluster.api, one), [one for one in found.sent if not one.straight])
        found.denied = Counter(status for status in statuses if status != 201)
        beside.result()
    found.written_in = time.perf_counter() - begun


def _tried(api: Api, one: Poison) -> int:
    """Its status; as from a client that asks for no strictness, so that more of it is stored."""
    return api.call("POST", api.path_of(one.value, named=False), one.value, fieldValidation="Ignore").status


def _take(found: Poisoned, threads: Sequence[Watching]) -> None:
    """Until every replica has named all that it must, or time is over."""
    begun = time.perf_counter()
    found.stored = list(replica_log.served(found.cluster.api))
    wanted = {replica_log.shown(value) for value in found.stored if replica_log.not_understood(value)}
    while time.perf_counter() - begun < TAKEN and all(thread.is_alive() for thread in threads):
        if all(wanted <= set(replica_log.named(one.process.log)) for one in found.replicas):
            break
        time.sleep(0.5)
    found.named_after = time.perf_counter() - begun


def test_the_poison_is_poison(poisoned: Poisoned) -> None:
    """Much of it is stored and not understood, some is denied by the API server, and what can't be understood by its making is not."""
    stored = {value["metadata"]["name"]: value for value in poisoned.stored}
    sure = [stored[name] for one in poisoned.sent if one.sure and (name := one.value["metadata"]["name"]) in stored]
    bad = [value for value in poisoned.stored if replica_log.not_understood(value)]
    assert [replica_log.shown(value) for value in sure if not replica_log.not_understood(value)] == []
    assert len(bad) > 0.4 * POISONS
    assert sum(poisoned.denied.values()) > 0.1 * POISONS
    assert set(poisoned.denied) - UNANSWERED <= {400, 422}
    straight = {one.value["metadata"]["name"].encode("utf-8", "replace").decode() for one in poisoned.sent if one.straight}
    assert len(straight & stored.keys()) > 0.9 * len(straight)


def test_no_replica_goes_down(poisoned: Poisoned) -> None:
    """The same processes serve, ready, and none has met an error that it did not foresee; neither has the API server."""
    poisoned.cluster.processes.check()
    for replica in poisoned.replicas:
        assert replica.page("/readyz").status == 200
        assert replica.events("serving")[0]["url"] == replica.url
        assert len(replica.events("serving")) == 1
        assert replica_log.forged(replica.process.log) == []
        assert replica.metric("berth_log_lines_dropped_total") == 0


def test_nobody_else_is_affected(poisoned: Poisoned) -> None:
    """Pods in namespaces that were not poisoned get the very bytes that they got before, all the while and afterwards, on every replica."""
    assert len(poisoned.seconds) > CALLS
    assert poisoned.others[:3] == []
    assert poisoned.away == 0
    for replica in poisoned.replicas:
        assert undisturbed.answers(replica, poisoned.questions) == poisoned.before


def test_each_is_named(poisoned: Poisoned) -> None:
    """Exactly the objects that are stored and not understood are named in the log of each replica, once each, and none other."""
    wanted = Counter(replica_log.shown(value) for value in poisoned.stored if replica_log.not_understood(value))
    for replica in poisoned.replicas:
        assert Counter(replica_log.named(replica.process.log)) == wanted


def test_others_hardly_pay(poisoned: Poisoned) -> None:
    """Once it is taken a review of another namespace costs hardly more CPU than before, and memory stays within its own."""
    _record(poisoned)
    assert undisturbed.cost(poisoned.replicas[0], poisoned.questions) < DEARER * poisoned.cost
    assert max(after - before for before, after in poisoned.memory) < MOST_MEMORY


def test_a_new_replica_starts_on_all_of_it(poisoned: Poisoned) -> None:
    """It is ready, decides by the very bytes as those that saw it come, and names the same objects."""
    begun = time.perf_counter()
    replica = serve(poisoned.cluster, "late", poisoned.cluster.folder / "berth.kubeconfig")
    print(f"a new replica is ready after {time.perf_counter() - begun:.1f} s")
    assert undisturbed.answers(replica, poisoned.questions) == poisoned.before
    wanted = {replica_log.shown(value) for value in replica_log.served(poisoned.cluster.api) if replica_log.not_understood(value)}
    poisoned.cluster.wait_for(lambda: wanted <= set(replica_log.named(replica.process.log)), "the new replica to name all", TAKEN)
    assert set(replica_log.named(replica.process.log)) == wanted
    assert replica_log.forged(replica.process.log) == []
    poisoned.cluster.processes.end(replica.process)


def _record(poisoned: Poisoned) -> None:
    bad = sum(map(replica_log.not_understood, poisoned.stored))
    p50, most = statistics.median(poisoned.seconds) * 1000, max(poisoned.seconds) * 1000
    p99 = statistics.quantiles(poisoned.seconds, n=100)[98] * 1000
    grown = max(after - before for before, after in poisoned.memory) / 2**20
    straight, denied = sum(one.straight for one in poisoned.sent), sum(poisoned.denied.values())
    lines = [
        "## Poisoned policies",
        "",
        f"{POISONS:,} objects past, under and around the schema, {straight:,} of them straight into etcd, in",
        f"{poisoned.written_in:.0f} s. The API server denied {denied:,}; {bad:,} were stored and are not understood, and each of them is",
        f"named in the log of each of {REPLICAS} replicas, the last {poisoned.named_after:.1f} s after the last write. Replicas down: 0.",
        f"Meanwhile {len(poisoned.seconds):,} reviews of pods in other namespaces were answered, {len(poisoned.others)} otherwise than",
        f"before and {poisoned.away} by 503: p50 {p50:.1f} ms ({poisoned.usual * 1000:.1f} before), p99 {p99:.0f} ms, longest",
        f"{most:.0f} ms. A replica grew by {grown:.0f} MiB.",
    ]
    print("\n".join(lines))
    if PROVE:
        results_page.write("poisoned policies", lines)
