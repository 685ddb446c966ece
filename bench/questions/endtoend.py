"""What does a pod's creation cost on a real API server: without a webhook, with Berth, with native policies of the same edits?

``servers`` measures handlers alone; here the API server evaluates conditions and native policies, encodes each review, calls over TLS,
applies the patch and decodes the pod again. Then many pods come at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bench.harness import native
from bench.harness.creations import BURST_PODS, WRITERS, Burst, burst, create, within
from bench.harness.following import control_plane
from bench.harness.generators import LoadRun
from bench.harness.intervals import Interval, figures, in_turn, median, median_of, ratio
from bench.harness.native import MUTATE, NAMESPACES, NATIVE, NONE
from bench.harness.setting import BenchSetting, milliseconds
from tests.support import results_page
from tests.support.machine import BenchError, cpu_seconds
from tests.testcluster import programs
from tests.testcluster.addons import berth
from tests.testcluster.addons.berth import Berth
from tests.testcluster.controlplane.cluster import Cluster

CELLS = (("job", 1, "dry run"), ("job", 16, "stored"), ("unlike", 1, "dry run"))
"""(load, writers, whether pods are stored)"""
BURSTS = {"job": "the pods of one Job", "mixed": "1,000 pods of 60 workloads"}
MOST_SECONDS, LEAST_RATE = 0.025, 150
"""Bars: Seconds within which Berth answers 99 % of a burst's calls, and pods a second"""
HEADER = (
    "load, writers", "who", "pods/s", "p50 ms", "p99 ms", "added p50 ms", "added p50 to the native policy's",
    "rate to the native policy's", "CPU us of the control plane", "its own CPU us",
)  # fmt: skip
METHOD = """\
kube-apiserver {Kubernetes}, etcd {etcd} without fsync; nobody else touches the pods. Candidates run in turn, on two cores that all share:
with 16 writers that counts against webhooks, whose CPU is taken from the API server. All make the same pod: a toleration, five required
node expressions, a grace period and do-not-disrupt. IfNeeded, as Berth is registered: evaluated again after its own edits.
job: pods of one Job, two containers, eight GPUs. unlike: each tolerates a taint of its own, so Berth caches no decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationRound:
    """One candidate for one round: rate, microseconds of a creation, CPU microseconds for a pod."""

    rate: float
    p50: float
    p99: float
    control_plane: float
    own: float


Rounds = Mapping[str, Sequence[CreationRound]]


def run(setting: BenchSetting) -> Iterator[str]:
    yield from (*METHOD.format(**programs.versions()).splitlines(), "")
    with control_plane(setting) as cluster:
        replica = native.register_all(cluster, setting)
        rows: list[Sequence[str]] = []
        verdicts: list[str] = []
        for load, writers, storage in setting.pick(CELLS, CELLS[:2]):
            cell, file, seconds = f"{load}, {writers}, {storage}", setting.bodies(f"{load}.pods"), setting.pick(1.0, 0.3)
            amount = partial(create, cluster.api, file, writers=writers, calls=3_000, seconds=seconds, dry_run=storage == "dry run")
            runs = {name: partial(_measure, cluster, amount, name, replica if name == MUTATE else None) for name in NAMESPACES}
            rounds = in_turn(runs, setting.rounds, warm_up=setting.pick(1, 0))
            rows += _rows(cell, rounds)
            verdicts += _verdict(cell, rounds) if writers == 1 else []
        yield from (*results_page.table(HEADER, rows), "", *verdicts, "", "### The burst", "")
        yield from _bursts(cluster, setting)


def added(rounds: Rounds, name: str, figure: str = "p50") -> list[float]:
    """Return what a candidate adds to a creation without a webhook in the same round."""
    return [a - b for a, b in zip(figures(rounds[name], figure), figures(rounds[NONE], figure), strict=True)]


def _added_ms(rounds: Rounds, name: str) -> Interval:
    return median_of([us / 1e3 for us in added(rounds, name)])


def added_ratio(rounds: Rounds, ours: str, theirs: str, figure: str = "p50") -> Interval:
    """Return what ``ours`` adds divided by what ``theirs`` adds in the same round: the median.

    Not the geometric mean, as of rates: in a round that was disturbed one of them may seem to add nothing, or less.
    """
    pairs = zip(added(rounds, ours, figure), added(rounds, theirs, figure), strict=True)
    return median_of([a / b if b else float("inf") for a, b in pairs])


def _measure(cluster: Cluster, create_some: partial[LoadRun], name: str, replica: Berth | None) -> CreationRound:
    """Run one candidate; what it stored is gone afterwards, so that each meets the same etcd. Raises BenchError if a pod is denied."""

    def cpu() -> tuple[float, float]:
        own = cpu_seconds(replica.process.popen.pid) if replica else 0.0
        return sum(cpu_seconds(cluster.named[process].popen.pid) for process in ("etcd", "kube-apiserver")), own

    before = cpu()
    created = create_some(namespace=NAMESPACES[name])
    control_plane, own = ((after - b) / created.calls * 1e6 for after, b in zip(cpu(), before, strict=True))
    if created.failed:
        raise BenchError(f"{name}: {created.failed} of {created.calls} pods were not created: {created.message}")
    cluster.api.delete_all("v1", "Pod", NAMESPACES[name])
    return CreationRound(rate=created.rate, p50=created.p50, p99=created.p99, control_plane=control_plane, own=own)


def _rows(cell: str, rounds: Rounds) -> Iterator[Sequence[str]]:
    for name, its in rounds.items():
        cells = [f"{median(its, 'rate'):,.0f}", *(milliseconds(median(its, figure)) for figure in ("p50", "p99"))]
        cells.append("" if name == NONE else str(_added_ms(rounds, name)))
        is_compared = name not in (NONE, NATIVE)
        cells += [str(added_ratio(rounds, name, NATIVE)), str(ratio(its, rounds[NATIVE], "rate"))] if is_compared else ["", ""]
        yield (cell if name == NONE else "", name, *cells, *(f"{median(its, figure):,.0f}" for figure in ("control_plane", "own")))


def _verdict(cell: str, rounds: Rounds) -> Iterator[str]:
    ours, theirs = (_added_ms(rounds, name) for name in (MUTATE, NATIVE))
    times, cpu = added_ratio(rounds, MUTATE, NATIVE), added_ratio(rounds, MUTATE, NATIVE, "control_plane")
    claim = f"{cell}: added p50 of {MUTATE} within or below the native policy's interval"
    yield results_page.shown(claim, f"{ours} to {theirs} ms: {times} times; control plane CPU {cpu}", held=ours.middle <= theirs.high)


def _bursts(cluster: Cluster, setting: BenchSetting) -> Iterator[str]:
    """Measure one replica with the shipped policies, registered as ``berth webhooks`` says."""
    replica = berth.serve(cluster, "burst", [berth.LIBRARY], "--platforms", "karpenter-aws")
    namespace = berth.create_namespace(cluster, "burst", {berth.SCOPE: "burst"})
    berth.register(cluster, berth.manifests(replica, scope="burst"), replica, namespace)

    def create_burst(load: str) -> Burst:
        created = burst(cluster, replica, setting.bodies(f"{load}.pods"), namespace, count=setting.pick(BURST_PODS, 128))
        cluster.api.delete_all("v1", "Pod", namespace)
        return created

    yield f"So many pods at once from {WRITERS} writers, stored; one replica with the shipped policies answers both calls, at Fail."
    yield "Latencies are of a creation as its writer sees it. Berth's own are from a call's head to its answer."
    yield ""
    rows, verdicts = [], []
    bursts = in_turn({title: partial(create_burst, load) for load, title in BURSTS.items()}, min(5, setting.rounds), warm_up=0)
    for title, its in bursts.items():
        created, kept = [each.created for each in its], min(within(each.berth, MOST_SECONDS) for each in its)
        pods, lowest = sum(run.calls for run in created), min(figures(created, "rate"))
        latencies = (milliseconds(us) for us in (median(created, "p50"), median(created, "p99"), max(figures(created, "longest"))))
        rate = f"{median(created, 'rate'):,.0f}, {lowest:,.0f}"
        rows.append((title, f"{len(its)} of {created[0].calls:,}", rate, *latencies, f"{kept:.2%}"))
        failed = sum(each.created.failed + each.created.calls - each.stored for each in its)
        opened, missed = sum(each.fail_open for each in its), sum(each.created.calls - each.admitted for each in its)
        outcome = f"{failed} failed, {opened:.0f} fail-open, {missed:.0f} that Berth did not count as admitted, of {pods:,}"
        verdicts += [
            results_page.shown(f"{title}: 0 failed, 0 fail-open", outcome, held=not failed and not opened and not missed),
            results_page.shown(f"{title}: 99 % of Berth's answers within {MOST_SECONDS * 1e3:.0f} ms", f"{kept:.2%}", held=kept >= 0.99),
            results_page.shown(f"{title}: at least {LEAST_RATE} pods/s", f"{lowest:,.0f} at least", held=lowest >= LEAST_RATE),
        ]
    header = ("load", "bursts", "pods/s, lowest", "p50 ms", "p99 ms", "longest ms", "its answers within 25 ms")
    yield from (*results_page.table(header, rows), "", *verdicts)
