"""Create pods on a real API server from several writers at once, and count what became of them on both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from bench.harness.generators import LoadRun, Vegeta
from tests.testcluster.addons.berth import Berth
from tests.testcluster.addons.metrics import samples, total
from tests.testcluster.controlplane.api import Api
from tests.testcluster.controlplane.cluster import Cluster

BURST_PODS, WRITERS = 1028, 64
Buckets = dict[float, float]
"""upper bound in seconds -> how many were within it, as Prometheus counts"""


def create(api: Api, pods: Path, namespace: str, writers: int, calls: int, seconds: float = 0, *, dry_run: bool = False) -> LoadRun:
    """Create so many pods of a file in turn, or as many of them as come in ``seconds``. Raises BenchError if a call has no answer."""
    url = f"https://{api.host}:{api.port}/api/v1/namespaces/{namespace}/pods{'?dryRun=All' if dry_run else ''}"
    flags = {"max-workers": writers, "connections": writers, "duration": f"{seconds}s"}
    return Vegeta(url, api.ca, pods, flags, token=api.token, calls=calls).result()


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Many pods at once."""

    created: LoadRun
    stored: int
    """pods that were there afterwards"""
    admitted: float
    """by Berth's count: berth_pods_total"""
    fail_open: float
    """by the API server's count, of all webhooks"""
    berth: Buckets
    """Berth's answers to both calls"""


def burst(cluster: Cluster, berth: Berth, pods: Path, namespace: str, *, count: int = BURST_PODS) -> Burst:
    """Create ``count`` pods in a namespace that was empty before, and for which ``berth`` is called. Raises BenchError."""

    def pages() -> tuple[str, str]:
        return cluster.api.text("/metrics"), berth.page("/metrics").body.decode()

    opened, (api_before, before) = "apiserver_admission_webhook_fail_open_count", pages()
    created = create(cluster.api, pods, namespace, WRITERS, count)
    api_after, after = pages()
    return Burst(
        created=created,
        stored=len(cluster.api.list("v1", "Pod", namespace)),
        admitted=total(after, "berth_pods_total", decision="admitted") - total(before, "berth_pods_total", decision="admitted"),
        fail_open=total(api_after, opened) - total(api_before, opened),
        berth=more(buckets(after), buckets(before)),
    )


def buckets(page: str) -> Buckets:
    """Return the histogram of Berth's answers on a page of metrics, summed over all series."""
    sums: Buckets = {}
    for sample in samples(page, "berth_request_duration_seconds_bucket"):
        bound = float(sample.labels["le"])
        sums[bound] = sums.get(bound, 0.0) + sample.value
    return sums


def more(after: Buckets, before: Buckets) -> Buckets:
    """Return what was counted between two pages; a series may be new on the second."""
    return {bound: value - before.get(bound, 0.0) for bound, value in after.items()}


def within(histogram: Buckets, seconds: float) -> float:
    """Return the share that took at most ``seconds``, a bound of the histogram (KeyError otherwise); NaN if nothing was counted."""
    counted = histogram.get(math.inf, 0.0)
    return histogram[seconds] / counted if counted else math.nan
