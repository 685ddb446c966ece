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
from bench.harness.native import MUTATE, NAMESPACES, NATIVE, NATIVE_AGAIN, NONE
from bench.harness.setting import BenchSetting, milliseconds
from tests.support import results_page
from tests.support.machine import BenchError, cpu_seconds
from tests.testcluster import programs
from tests.testcluster.addons import berth
from tests.testcluster.addons.berth import Berth
from tests.testcluster.controlplane.cluster import Cluster

CELLS = (("job", 1, True), ("job", 16, False), ("unlike", 1, True))
"""(load, writers, dry run)"""
CALLS = 3_000
"""more than are made in a second"""
BURSTS = {"job": "the pods of one Job", "mixed": "1,000 pods of 60 workloads"}
MOST_SECONDS, LEAST_RATE = 0.025, 150
"""Bars: Berth's own 99th percentile in a burst, and pods a second"""
HEADER = (
    "load, writers", "who", "pods/s", "p50 ms", "p99 ms", "added p50 ms", "added p50 to the native policy's",
    "rate to the native policy's", "CPU us of the control plane", "its own CPU us",
)  # fmt: skip
METHOD = """\
kube-apiserver {Kubernetes}, etcd {etcd} without fsync; no scheduler, controller or kubelet touches the pods. Each round runs every
candidate in turn; what it stored is deleted before the next. Intervals are 95 %.

- Nothing is pinned: API server, etcd, Berth and the load generator share two cores as the kernel places them. With 16 writers that counts
  against webhooks, whose CPU is taken from the API server; with one writer they wait for each other in turn.
- All store the same pod but for berth.dev/applied (compared before measuring): a toleration, five required node expressions, a grace
  period and do-not-disrupt (bench/rivals/native).
- Berth is registered as `berth webhooks` prints it. Native policies are not reinvoked, but in the row IfNeeded, as Berth is registered:
  such a policy is evaluated again after its own edits.
- job: pods of one Job, two containers, eight GPUs. unlike: each tolerates a taint of its own, so Berth caches no decision.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationRound:
    """One candidate for one round."""

    created: LoadRun
    control_plane: float
    """CPU microseconds for a pod, user and system"""
    own: float

    @property
    def p50(self) -> float:
        """Return microseconds."""
        return self.created.p50


Rounds = Mapping[str, Sequence[CreationRound]]


def run(setting: BenchSetting) -> Iterator[str]:
    """Yield the section."""
    yield from METHOD.format(**programs.versions()).splitlines()
    yield ""
    with control_plane(setting) as cluster:
        replica = native.register_all(cluster, setting)
        rows: list[Sequence[str]] = []
        verdicts: list[str] = []
        for load, writers, is_dry in setting.pick(CELLS, CELLS[:2]):
            cell = f"{load}, {writers}, {'dry run' if is_dry else 'stored'}"
            measure = partial(_measure, cluster, setting, replica, f"{load}.pods", writers, is_dry)
            rounds = in_turn({name: partial(measure, name) for name in NAMESPACES}, setting.rounds, warm_up=setting.pick(1, 0))
            rows += _rows(cell, rounds, writers)
            verdicts += _verdict(cell, rounds) if writers == 1 else []
        yield from (*results_page.table(HEADER, rows), "", *verdicts, "", "### The burst", "")
        yield from _bursts(cluster, setting)


def added_p50(rounds: Rounds, name: str, figure: str = "p50") -> Interval:
    """Return what a candidate adds to a creation without a webhook in the same round: the median."""
    return median_of(_differences(rounds, name, figure))


def added_ratio(rounds: Rounds, ours: str, theirs: str, figure: str = "p50") -> Interval:
    """Return what ``ours`` adds divided by what ``theirs`` adds in the same round: the median.

    Not the geometric mean, as of rates: in a round that was disturbed one of them may seem to add nothing, or less.
    """
    pairs = zip(_differences(rounds, ours, figure), _differences(rounds, theirs, figure), strict=True)
    return median_of([a / b if b else float("inf") for a, b in pairs])


def _differences(rounds: Rounds, name: str, figure: str) -> list[float]:
    return [a - b for a, b in zip(figures(rounds[name], figure), figures(rounds[NONE], figure), strict=True)]


def _measure(cluster: Cluster, setting: BenchSetting, replica: Berth, pods: str, writers: int, is_dry: bool, name: str) -> CreationRound:
    """Run one candidate; what it stored is gone afterwards, so that each meets the same etcd. Raises BenchError if a pod is denied."""
    pids = [cluster.named[process].popen.pid for process in ("etcd", "kube-apiserver")]
    own_pids = [replica.process.popen.pid] if name == MUTATE else []
    before = [sum(map(cpu_seconds, group)) for group in (pids, own_pids)]
    file, seconds = setting.bodies(pods), setting.pick(1.0, 0.3)
    created = create(cluster.api, file, NAMESPACES[name], writers=writers, calls=CALLS, dry_run=is_dry, seconds=seconds)
    used = [(sum(map(cpu_seconds, group)) - b) / max(1, created.calls) * 1e6 for group, b in zip((pids, own_pids), before, strict=True)]
    if created.failed or not created.calls:
        raise BenchError(f"{name}: {created.failed} of {created.calls} pods were not created: {created.message}")
    if not is_dry:
        cluster.api.delete_all("v1", "Pod", NAMESPACES[name])
    return CreationRound(created=created, control_plane=used[0], own=used[1])


def _rows(cell: str, rounds: Rounds, writers: int) -> Iterator[Sequence[str]]:
    for name, its in rounds.items():
        created, is_compared = [one.created for one in its], name in (MUTATE, NATIVE_AGAIN)
        has_latency = writers == 1  # with more, latency only says what the rate says
        yield (
            cell if name == NONE else "",
            name,
            f"{median(created, 'rate'):,.0f}",
            *(milliseconds(median(created, figure)) for figure in ("p50", "p99")),
            str(_in_milliseconds(added_p50(rounds, name))) if has_latency and name != NONE else "",
            str(added_ratio(rounds, name, NATIVE)) if has_latency and is_compared else "",
            str(ratio(created, [one.created for one in rounds[NATIVE]], "rate")) if is_compared else "",
            f"{median(its, 'control_plane'):,.0f}",
            f"{median(its, 'own'):,.0f}" if any(one.own for one in its) else "",
        )


def _verdict(cell: str, rounds: Rounds) -> Iterator[str]:
    ours, theirs = (_in_milliseconds(added_p50(rounds, name)) for name in (MUTATE, NATIVE))
    times, cpu = added_ratio(rounds, MUTATE, NATIVE), added_ratio(rounds, MUTATE, NATIVE, "control_plane")
    claim = f"{cell}: added p50 of {MUTATE} within or below the native policy's interval"
    yield results_page.shown(claim, f"{ours} to {theirs} ms: {times} times; by CPU of the control plane {cpu}", ours.middle <= theirs.high)


def _bursts(cluster: Cluster, setting: BenchSetting) -> Iterator[str]:
    """Measure one replica with the shipped policies, registered as ``berth webhooks`` says."""
    replica = berth.serve(cluster, "burst", [berth.LIBRARY], "--platforms", "karpenter-aws")
    namespace = berth.create_namespace(cluster, "burst", {berth.SCOPE: "burst"})
    berth.register(cluster, berth.manifests(replica, scope="burst"), replica, namespace)

    def create_burst(load: str) -> Burst:
        seen = burst(cluster, replica, setting.bodies(f"{load}.pods"), namespace, count=setting.pick(BURST_PODS, 128))
        cluster.api.delete_all("v1", "Pod", namespace)
        return seen

    bursts = in_turn({title: partial(create_burst, load) for load, title in BURSTS.items()}, min(5, setting.rounds), warm_up=0)
    yield f"So many pods at once from {WRITERS} writers, stored; one replica with the shipped policies answers both calls, at Fail."
    yield "Latencies are of a creation as its writer sees it. Berth's own are from a call's head to its answer."
    yield ""
    own = ("Berth's own p99 ms, worst", "its answers within 25 ms")
    header = ("load", "bursts", "pods/s, lowest", "p50 ms", "p99 ms", "longest ms", *own)
    yield from (*results_page.table(header, ((title, *_cells(its)) for title, its in bursts.items())), "")
    for title, its in bursts.items():
        yield from _burst_verdicts(title, its)


def _cells(its: Sequence[Burst]) -> Iterator[str]:
    created = [one.created for one in its]
    yield f"{len(its)} of {created[0].calls:,}"
    yield f"{median(created, 'rate'):,.0f}, {min(figures(created, 'rate')):,.0f}"
    yield from (milliseconds(us) for us in (median(created, "p50"), median(created, "p99"), max(figures(created, "longest"))))
    yield f"{median(its, 'p99') * 1e3:.1f}, {max(figures(its, 'p99')) * 1e3:.1f}"
    yield f"{min(within(one.berth, MOST_SECONDS) for one in its):.2%}"


def _burst_verdicts(load: str, its: Sequence[Burst]) -> Iterator[str]:
    """Yield the bars, which each burst must keep."""
    pods, lowest = sum(one.created.calls for one in its), min(one.created.rate for one in its)
    failed = sum(one.created.failed + one.created.calls - one.stored for one in its)
    opened, missed = sum(one.fail_open for one in its), sum(one.created.calls - one.admitted for one in its)
    outcome = f"{failed} failed, {opened:.0f} fail-open, {missed:.0f} that Berth did not count as admitted, of {pods:,}"
    yield results_page.shown(f"{load}: 0 failed, 0 fail-open", outcome, not failed and not opened and not missed)
    claim, kept = f"{load}: p99 at most {MOST_SECONDS * 1e3:.0f} ms in Berth's own histogram", [within(b.berth, MOST_SECONDS) for b in its]
    yield results_page.shown(claim, f"{max(figures(its, 'p99')) * 1e3:.1f} ms at most", min(kept) >= 0.99)
    yield results_page.shown(f"{load}: at least {LEAST_RATE} pods/s", f"{lowest:,.0f} at least", lowest >= LEAST_RATE)


def _in_milliseconds(value: Interval) -> Interval:
    return Interval(middle=value.middle / 1e3, low=value.low / 1e3, high=value.high / 1e3)
