"""Pods created on a real API server: without a webhook, with Berth, with native policies of the same edits, with handlers in Go.

bench/handlers measures handlers alone; this is what a creation costs in all: the API server itself evaluates conditions and native
policies, encodes each review, calls over TLS, applies the patch and decodes the pod again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.creations import burst, registrations
from bench.creations.client import Creations, written
from bench.creations.registrations import BOTH, MUTATE, NATIVE, NATIVE_AGAIN, NATIVES, NONE
from bench.creations.rounds import Bench, Cell, Round, Rounds, added, added_ratio, p50
from bench.measuring import candidates, intervals
from bench.measuring.intervals import Interval
from bench.measuring.setting import Setting, middle, milliseconds
from tests.support import results_page
from tests.testcluster import programs
from tests.testcluster.addons import berth
from tests.testcluster.controlplane.cluster import Cluster

BESIDE = {
    MUTATE: NATIVE,
    NATIVE_AGAIN: NATIVE,
    candidates.CONTROLLER_RUNTIME: NATIVE,
    candidates.NET_HTTP: NATIVE,
    BOTH: NATIVES,
}
"""what each is compared with"""
BURSTS = {"job": "the pods of one Job", "mixed": "1,000 pods of 60 workloads"}


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    yield from (*_setting(), "")
    with registrations.control_plane(setting) as cluster:
        alone = _alone(cluster, setting)
        chosen = registrations.all_registered(cluster, setting)
        seconds = 0.3 if setting.scale.quick else float(setting.scale.seconds)
        bench = Bench(cluster=cluster, candidates=chosen, seconds=seconds, creations=Creations(cluster.api))
        seen = {
            cell: bench.in_turn(cell, written(cell.load, setting.folder), uncounted=_warming(cell, setting)) for cell in _cells(setting)
        }
        yield from results_page.table(_HEADER, (row for cell, rounds in seen.items() for row in _rows(cell, rounds)))
        yield from ("", *(line for cell, rounds in seen.items() if cell.writers == 1 for line in _held(cell, rounds)), "")
        yield from (*_notes(alone, seen), "", "### The burst", "")
        yield from _bursts(cluster, setting)


def _setting() -> Iterator[str]:
    """What ran, and what was decided."""
    of = programs.versions()
    yield f"kube-apiserver {of['Kubernetes']}, etcd {of['etcd']} without fsync; no scheduler, controller or kubelet, so nobody else"
    yield "touches the pods. Each round runs every candidate in turn; what it stored is deleted before the next. Intervals are 95 %."
    yield ""
    yield "- Nothing is pinned: API server, etcd, the process that answers and the load generator share two cores as the kernel places"
    yield "  them. So a webhook's own CPU is taken from the API server, which elsewhere it is not: with 16 writers that counts against"
    yield "  webhooks. One core for the API server and one for the webhook would count for them, because a native policy has no second"
    yield "  one. With one writer they wait for each other in turn."
    yield "- All are registered all the time, each for a namespace of its own by its label, and store the same pod but for"
    yield "  berth.dev/applied (compared before measuring): a toleration, five required node expressions, a grace period and"
    yield "  do-not-disrupt (bench/creations/native)."
    yield "- Berth is registered as `berth webhooks` prints it, the handlers in Go with the native policy's one short condition. Native"
    yield "  policies are not reinvoked, but in the row IfNeeded, as Berth is registered: such a policy is evaluated again after its own"
    yield "  edits."
    yield "- job: pods of one Job, two containers, eight GPUs. unlike: each tolerates a taint of its own, so Berth remembers no decision."


def _alone(cluster: Cluster, setting: Setting) -> list[Round]:
    """Without a webhook, before anything is registered; the first run is not counted."""
    bench = Bench(cluster=cluster, candidates=(registrations.bare(),), seconds=setting.scale.seconds, creations=Creations(cluster.api))
    cell = Cell(load="job", writers=1, dry_run=True, rounds=1 if setting.scale.quick else 5)
    return bench.in_turn(cell, written("job", setting.folder), uncounted=1)[NONE]


def _cells(setting: Setting) -> Iterator[Cell]:
    rounds = setting.scale.rounds
    if setting.scale.quick:
        yield Cell(load="job", writers=1, dry_run=True, rounds=rounds)
        yield Cell(load="job", writers=16, dry_run=False, rounds=rounds)
        return
    for dry_run in (True, False):
        for writers in (1, 16):
            yield Cell(load="job", writers=writers, dry_run=dry_run, rounds=rounds)
    yield Cell(load="unlike", writers=1, dry_run=True, rounds=min(5, rounds))


def _warming(cell: Cell, setting: Setting) -> bool:
    """The first runs on a new API server are slow; then it stays warm."""
    return not setting.scale.quick and cell == next(_cells(setting))


_HEADER = (
    "load, writers", "who", "pods/s", "p50 ms", "p99 ms", "added p50 ms", "added p50 to the native policy's",
    "rate to the native policy's", "CPU us of the control plane", "its own CPU us",
)  # fmt: skip


def _rows(cell: Cell, rounds: Rounds) -> Iterator[Sequence[str]]:
    full = cell.writers > 1  # then latency only says what the rate says
    for name, its in rounds.items():
        beside = BESIDE.get(name)
        yield (
            str(cell) if name == NONE else "",
            name,
            f"{middle(its, _rate):,.0f}",
            milliseconds(middle(its, p50)),
            milliseconds(middle(its, lambda one: one.created.p99)),
            "" if name == NONE or full else str(_in_milliseconds(added(rounds, name))),
            "" if beside is None or full else str(added_ratio(rounds, name, beside)),
            "" if beside is None else str(intervals.ratio(*([_rate(one) for one in rounds[who]] for who in (name, beside)))),
            f"{middle(its, _control_plane):,.0f}",
            f"{middle(its, lambda one: one.own):,.0f}" if any(one.own for one in its) else "",
        )


def _held(cell: Cell, rounds: Rounds) -> Iterator[str]:
    """The bar of the issue, and beside it what does not depend on who else uses the machine."""
    ours, native = (_in_milliseconds(added(rounds, name)) for name in (MUTATE, NATIVE))
    ratio, cpu = added_ratio(rounds, MUTATE, NATIVE), added_ratio(rounds, MUTATE, NATIVE, _control_plane)
    claim = f"{cell}: added p50 of {MUTATE} within or below the native policy's interval"
    yield results_page.shown(
        claim, f"{ours} to {native} ms: {ratio} times; by CPU of the control plane {cpu}", held=ours.middle <= native.high
    )


def _notes(alone: Sequence[Round], seen: dict[Cell, Rounds]) -> Iterator[str]:
    first = next(iter(seen.values()))[NONE]
    before, after = (milliseconds(middle(its, p50)) for its in (alone, first))
    cpu, cpus = (middle(its, _control_plane) for its in (alone, first))
    yield f"Without a webhook, before any of them was registered: p50 {before} ms, {cpu:,.0f} us of CPU; with all registered for other"
    yield f"namespaces {after} ms, {cpus:,.0f} us (not in turn): what they cost a pod that none of them is for is in every row alike."
    load = middle(
        [one for rounds in seen.values() for its in rounds.values() for one in its], lambda one: one.created.cpu / one.created.pods
    )
    yield f"The load generator takes {load * 1e6:.0f} us of CPU for a pod."


def _bursts(cluster: Cluster, setting: Setting) -> Iterator[str]:
    """One replica with the shipped policies, registered as ``berth webhooks`` says."""
    quick = setting.scale.quick
    replica = berth.serve(cluster, "burst", [berth.LIBRARY], "--platforms", "karpenter-aws")
    namespace = berth.create_namespace(cluster, "burst", {berth.SCOPE: "burst"})
    berth.register(cluster, berth.manifests(replica, scope="burst"), replica, namespace)
    found: dict[str, list[burst.Burst]] = {title: [] for title in BURSTS.values()}
    for _ in range(1 if quick else 5):
        for load, title in BURSTS.items():
            pods = written(load, setting.folder)
            found[title].append(burst.burst(cluster, replica, pods, namespace, count=128 if quick else burst.PODS))
            cluster.api.delete_all("v1", "Pod", namespace)
    yield f"So many pods at once from {burst.WRITERS} writers, stored; one replica with the shipped policies answers both calls, at Fail."
    yield "Latencies are of a creation as its writer sees it. Berth's own are from a call's head to its answer; the API server's are of its"
    yield "calls, its waiting for a core included."
    yield ""
    yield from burst.table(found)
    yield ""
    for title, its in found.items():
        yield from burst.held(title, its)


def _in_milliseconds(value: Interval) -> Interval:
    return Interval(middle=value.middle / 1e3, low=value.low / 1e3, high=value.high / 1e3)


def _rate(one: Round) -> float:
    return one.created.rate


def _control_plane(one: Round) -> float:
    return one.control_plane
