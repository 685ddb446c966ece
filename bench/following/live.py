"""A cluster that is followed: whether many policies, namespaces and nodes make a replica slow to start, large, or slow to follow."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from bench.following.cluster import Following, Size, following
from bench.handlers.policies import LEAST, LOADS
from bench.load import bodies
from bench.measuring import intervals
from bench.measuring.setting import Run, Runs, Setting, middle, milliseconds
from tests.support import machine, results_page
from tests.support.cluster.policy_writes import LABEL, follow, quantile, writes
from tests.support.cluster.replicas import Caller, asking
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.controlplane.api import MERGE

FEW = Size(policies=10, namespaces=1_000, nodes=10_000)
BARRED = Size(policies=1_000, namespaces=1_000, nodes=1_000)
"""for which the issue sets bars"""
SIZES = (FEW, BARRED, Size(policies=10_000, namespaces=10_000, nodes=10_000))
QUICK_SIZES = (Size(policies=10, namespaces=1_000, nodes=100), Size(policies=100, namespaces=1_000, nodes=100))
CONNECTIONS = 16
MOST_MB = 150
NODE_UPDATES = 50
"""A second. 10,000 kubelets tell of their nodes every five minutes where nothing changes, which is 33; a driver's rollout adds its own"""
NODES = 50
"""that change"""
WRITES, QUICK_WRITES = 200, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """What a replica made of changes, one after the other. Seconds."""

    p50: float
    p99: float
    """from the API server's answer to a decision by the change"""
    held: float
    """the longest that a review took around any of them"""


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    sizes = QUICK_SIZES if setting.scale.quick else SIZES
    yield "Each replica follows an API server of its own, in which are so many policies (bench.load.many_policies), namespaces, nodes."
    yield f"It is ready once all are read and compiled. Then {CONNECTIONS} connections post reviews to each in turn; then come {WRITES}"
    yield "changes of policies and of a namespace's label, each waited for; meanwhile it writes the statuses of its policies, 20 a second."
    yield ""
    with ExitStack() as stack:
        all_following = [stack.enter_context(following(setting, size)) for size in sizes]
        first = {one.size: _first_reviews(one, setting) for one in all_following}
        servers = [one.server() for one in all_following]
        by_load = {load: setting.in_turn(servers, file, CONNECTIONS) for load, file in LOADS.items()}
        reviewed = {one.size: one.memory() for one in all_following}
        rows = [row for load, runs in by_load.items() for row in _rates(load, runs, all_following)]
        yield from results_page.table(("load", "policies", "reviews/s", "p50 ms", "p99 ms", "CPU us", "rate to that at 10", "by CPU"), rows)
        yield ""
        seen = {one.size: _written(one, QUICK_WRITES if setting.scale.quick else WRITES) for one in all_following}
        yield from results_page.table(_HEADER, [_row(one, first[one.size], reviewed[one.size], seen[one.size]) for one in all_following])
        yield from ("", *_held(by_load, all_following, reviewed), "")
        yield from _at_rest(all_following[0], 2.0 if setting.scale.quick else 20.0)


_HEADER = (
    "policies", "namespaces", "nodes", "s until ready", "first review of a namespace ms", "MB when ready", "after reviews", "after changes",
    "followed p50 ms", "p99 ms", "longest review ms",
)  # fmt: skip


def _row(one: Following, first: float, reviewed: float, seen: Writes) -> tuple[str, ...]:
    memory = (f"{one.resident:.0f}", f"{reviewed:.0f}", f"{one.memory():.0f}")
    times = (f"{seconds * 1000:.0f}" for seconds in (seen.p50, seen.p99, seen.held))
    return one.size.name, f"{one.size.namespaces:,}", f"{one.size.nodes:,}", f"{one.ready:.1f}", f"{first * 1000:.1f}", *memory, *times


def _first_reviews(one: Following, setting: Setting) -> float:
    """Each pod of the load mixed once, so that every namespace is known before anything is timed: the median time in seconds."""
    caller = Caller(one.replica, "default")
    lines = setting.bodies(LOADS["mixed"]).read_bytes().splitlines()
    seen = [caller.ask(bodies.with_number(line, number)) for number, line in enumerate(lines)]
    caller.close()
    assert {answer.status for answer in seen} == {200}
    return quantile([answer.received - answer.sent for answer in seen], 0.5)


def _rates(load: str, runs: Runs, all_following: Sequence[Following]) -> Iterator[tuple[str, ...]]:
    for one in all_following:
        its = runs[one.size.name]
        figures = [milliseconds(middle(its, lambda run: run.load.p50)), milliseconds(middle(its, lambda run: run.load.p99))]
        cpu, rate = middle(its, lambda run: run.cpu), middle(its, lambda run: run.load.rate)
        few = runs[FEW.name]
        yield load, one.size.name, f"{rate:,.0f}", *figures, f"{cpu:.0f}", str(_by_rate(its, few)), str(_by_cpu(its, few))


def _by_rate(its: Sequence[Run], few: Sequence[Run]) -> intervals.Interval:
    return intervals.ratio(*([run.load.rate for run in runs] for runs in (its, few)))


def _by_cpu(its: Sequence[Run], few: Sequence[Run]) -> intervals.Interval:
    """What a call costs at ten policies to what it costs here."""
    return intervals.ratio(*([run.cpu for run in runs] for runs in (few, its)))


def _held(by_load: dict[str, Runs], all_following: Sequence[Following], reviewed: dict[Size, float]) -> Iterator[str]:
    for load, runs in by_load.items():
        if BARRED.name in runs:
            rate, cpu = _by_rate(runs[BARRED.name], runs[FEW.name]), _by_cpu(runs[BARRED.name], runs[FEW.name])
            yield results_page.shown(
                f"{load}: at {BARRED.name} policies {LEAST} of the rate at ten", f"{rate}; by CPU {cpu}", held=rate.middle >= LEAST
            )
    for one in all_following:
        if one.size == BARRED:
            most = max(one.resident, reviewed[one.size], one.memory())
            claim = f"{BARRED.name} policies, namespaces and nodes: at most {MOST_MB} MB"
            yield results_page.shown(claim, f"{most:.0f} MB", held=most <= MOST_MB)


def _written(one: Following, number: int) -> Writes:
    one.cluster.api.close()  # what has idled for minutes is closed by the server
    namespace = create_namespace(one.cluster, "followed", {LABEL: "followed"})
    seconds, held = [], 0.0
    with asking([one.replica], namespace) as threads:
        time.sleep(1)  # the namespace is new
        before = threads[0].answers[-1].grace
        for write in itertools.islice(writes(namespace, before), number):
            (took,) = follow(one.cluster.api, write, threads, before).by_replica
            seconds.append(took)
            held = max(held, *(answer.received - answer.sent for answer in list(threads[0].answers)))
            before = write.grace
    return Writes(p50=quantile(seconds, 0.5), p99=quantile(seconds, 0.99), held=held)


def _at_rest(one: Following, seconds: float) -> Iterator[str]:
    """CPU of a replica that nobody calls."""
    yield f"Nobody calls the replica with {one.size.name} policies, which knows {one.size.nodes:,} nodes; its CPU in {seconds:.0f} s each:"
    yield ""
    rows = []
    for what, change in (("nothing changes", None), ("statuses of nodes change", _status), ("labels that are read change", _label)):
        updates, cpu = _churned(one, change, seconds)
        each = f"{cpu / updates * 1e6:,.0f}" if updates else ""
        rows.append((what, f"{updates / seconds:.0f}", f"{cpu / seconds * 100:.1f}", each))
    yield from results_page.table(("", "updates/s", "% of a core", "us for an update"), rows)


Change = Callable[[int], tuple[str, dict[str, object]]]
"""The number of an update to (subresource, merge patch)"""


def _status(number: int) -> tuple[str, dict[str, object]]:
    return "/status", {"status": {"nodeInfo": {"bootID": f"{number}"}}}


def _label(number: int) -> tuple[str, dict[str, object]]:
    return "", {
        "metadata": {"labels": {"nvidia.com/gpu.count": f"{number}", "nvidia.com/mig.strategy": "mixed" if number % 2 else "single"}}
    }


def _churned(one: Following, change: Change | None, seconds: float) -> tuple[int, float]:
    """(updates, CPU seconds)"""
    paths = [f"/api/v1/nodes/{node['metadata']['name']}" for node in one.cluster.api.list("v1", "Node")[:NODES]]
    done, ended = itertools.count(), threading.Event()

    def update(number: int) -> None:
        assert change is not None
        subresource, patch = change(number)
        reply = one.cluster.api.call("PATCH", paths[number % len(paths)] + subresource, patch, content=MERGE)
        assert reply.ok, reply.message
        next(done)

    time.sleep(1)
    before, begun = machine.cpu_seconds(one.pid), time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        futures = []
        for number in range(int(seconds * NODE_UPDATES)):
            ended.wait(max(0.0, begun + number / NODE_UPDATES - time.monotonic()))
            if change is not None:
                futures.append(pool.submit(update, number))
        for future in futures:
            future.result()
    time.sleep(max(0.0, begun + seconds - time.monotonic()))
    return next(done), machine.cpu_seconds(one.pid) - before
