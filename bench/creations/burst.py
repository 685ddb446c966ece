"""Many GPU pods at once, from many writers, against one replica: what became of them, by the API server's counts and by Berth's own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.creations.client import Created, Creations
from bench.measuring.setting import middle, milliseconds
from tests.support import results_page as page
from tests.testcluster.addons.berth import Berth
from tests.testcluster.addons.metrics import samples, total
from tests.testcluster.controlplane.cluster import Cluster

PODS, WRITERS = 1028, 64
MOST_SECONDS, LEAST_RATE = 0.025, 150
"""what the issue asks of Berth's own 99th percentile, and of pods a second"""
BERTH_SECONDS = "berth_request_duration_seconds"
API_SECONDS = "apiserver_admission_webhook_admission_duration_seconds"
FAIL_OPEN = "apiserver_admission_webhook_fail_open_count"
MUTATE, VALIDATE = "mutate.pods.berth.dev", "validate.pods.berth.dev"
Buckets = dict[float, float]
"""upper bound in seconds -> how many were within it, as Prometheus counts"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """One of them."""

    created: Created
    stored: int
    """pods that were there afterwards"""
    admitted: float
    """by Berth's count: berth_pods_total"""
    fail_open: float
    """by the API server's count, of all webhooks"""
    berth: Buckets
    """Berth's answers, of both its calls"""
    calls: dict[str, Buckets]
    """by the webhook's name: what the API server waited for them"""


def burst(cluster: Cluster, berth: Berth, pods: Path, namespace: str, *, count: int = PODS, writers: int = WRITERS) -> Burst:
    """All calls of ``count`` creations. The namespace is empty before; ``berth`` is called for it. Raises BenchError."""
    before, own = cluster.api.text("/metrics"), _own(berth)
    created = Creations(cluster.api).run(pods, namespace, writers=writers, count=count)
    after, owned = cluster.api.text("/metrics"), _own(berth)
    return Burst(
        created=created,
        stored=len(cluster.api.list("v1", "Pod", namespace)),
        admitted=total(owned, "berth_pods_total", decision="admitted") - total(own, "berth_pods_total", decision="admitted"),
        fail_open=total(after, FAIL_OPEN) - total(before, FAIL_OPEN),
        berth=more(buckets(owned, BERTH_SECONDS), buckets(own, BERTH_SECONDS)),
        calls={name: more(buckets(after, API_SECONDS, name=name), buckets(before, API_SECONDS, name=name)) for name in (MUTATE, VALIDATE)},
    )


def _own(berth: Berth) -> str:
    return berth.page("/metrics").body.decode()


def buckets(page: str, metric: str, /, **labels: str) -> Buckets:
    """Of a histogram on a page of metrics, summed over all series with these labels."""
    found: Buckets = {}
    for sample in samples(page, f"{metric}_bucket"):
        if labels.items() <= sample.labels.items():
            bound = float(sample.labels["le"])
            found[bound] = found.get(bound, 0.0) + sample.value
    return dict(sorted(found.items()))


def more(after: Buckets, before: Buckets) -> Buckets:
    """What was counted between two pages; a series may be new on the second."""
    return {bound: value - before.get(bound, 0.0) for bound, value in after.items()}


def within(buckets: Buckets, seconds: float) -> float:
    """The share that took at most ``seconds``, a bound of the histogram (KeyError for another); NaN where nothing was counted."""
    counted = buckets.get(math.inf, 0.0)
    return buckets[seconds] / counted if counted else math.nan


def quantile(buckets: Buckets, share: float) -> float:
    """Seconds, as Prometheus' histogram_quantile estimates them: evenly spread inside a bucket. NaN where nothing was counted; past
    the last bound, that bound."""
    wanted, low, under = share * buckets.get(math.inf, 0.0), 0.0, 0.0
    if not wanted:
        return math.nan
    for bound, value in buckets.items():
        if value >= wanted and value > under:
            return low if math.isinf(bound) else low + (bound - low) * (wanted - under) / (value - under)
        low, under = bound, value
    raise AssertionError("the last bucket has them all")


def table(bursts: Mapping[str, Sequence[Burst]]) -> Iterator[str]:
    """A row for each load. Of the bursts: the median, and where a bar stands on it the worst."""
    waited = (f"API server for {path}: p50 ms, within 25 ms" for path in ("/mutate", "/validate"))
    own = ("Berth's own p99 ms, worst", "its answers within 25 ms")
    header = ("load", "bursts", "pods/s, lowest", "p50 ms", "p99 ms", "longest ms", *own, *waited)
    yield from page.table(header, ((load, *_cells(its)) for load, its in bursts.items()))


def _cells(its: Sequence[Burst]) -> Iterator[str]:
    yield f"{len(its)} of {its[0].created.pods:,}"
    yield f"{middle(its, lambda one: one.created.rate):,.0f}, {min(one.created.rate for one in its):,.0f}"
    yield milliseconds(middle(its, lambda one: one.created.p50))
    yield milliseconds(middle(its, lambda one: one.created.p99))
    yield milliseconds(max(one.created.longest for one in its))
    yield f"{middle(its, _p99) * 1e3:.1f}, {max(map(_p99, its)) * 1e3:.1f}"
    yield f"{min(within(one.berth, MOST_SECONDS) for one in its):.2%}"
    for name in (MUTATE, VALIDATE):
        calls = added(one.calls[name] for one in its)
        yield f"{quantile(calls, 0.5) * 1e3:.1f}, {within(calls, MOST_SECONDS):.2%}"


def added(all_of: Iterator[Buckets]) -> Buckets:
    """Counted together."""
    total: Buckets = {}
    for buckets in all_of:
        for bound, value in buckets.items():
            total[bound] = total.get(bound, 0.0) + value
    return total


def held(load: str, its: Sequence[Burst]) -> Iterator[str]:
    """The bars of the issue: each burst must keep them."""
    failed = sum(one.created.failed + one.created.pods - one.stored for one in its)
    opened, missed = sum(one.fail_open for one in its), sum(one.created.pods - one.admitted for one in its)
    pods = sum(one.created.pods for one in its)
    outcome = f"{failed} failed, {opened:.0f} fail-open, {missed:.0f} that Berth did not count as admitted, of {pods:,}"
    yield page.shown(f"{load}: 0 failed, 0 fail-open", outcome, held=not failed and not opened and not missed)
    worst = max(map(_p99, its))
    kept = all(within(one.berth, MOST_SECONDS) >= 0.99 for one in its)
    yield page.shown(
        f"{load}: p99 at most {MOST_SECONDS * 1e3:.0f} ms in Berth's own histogram", f"{worst * 1e3:.1f} ms at most", held=kept
    )
    lowest = min(one.created.rate for one in its)
    yield page.shown(f"{load}: at least {LEAST_RATE} pods/s", f"{lowest:,.0f} at least", held=lowest >= LEAST_RATE)


def _p99(one: Burst) -> float:
    return quantile(one.berth, 0.99)
