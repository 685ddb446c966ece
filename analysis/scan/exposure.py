"""What may be lost of a pod that runs: it is on spot capacity, or it is a long run to an end without a mark that keeps its
node and without time to write a last checkpoint. Read as `berth scan` reads it."""

from __future__ import annotations

from typing import NamedTuple

from analysis.audit.stored_pod import StoredPod
from analysis.scan.of_pods.runs import LONG, says, unprotected
from analysis.scan.seen import RUNS
from catalog import Catalog
from kube.templates import group_of
from policies.facts.platform_detection import home, newer
from policies.state.snapshot import Snapshot


class Exposure(NamedTuple):
    """Of one pod."""

    spot: bool = False
    """It is on a node whose labels say that it is spot capacity."""
    unprotected: bool = False
    """It runs to an end, for longer than two hours by what it says or by its age, and nothing protects it."""


def exposure(pod: StoredPod, snapshot: Snapshot, age: float | None) -> Exposure:
    """Return what may be lost of a pod; of one without a node nothing. ``age``: seconds since it was created, if known."""
    labels = snapshot.cluster.nodes.get(pod.node)
    if labels is None:
        return Exposure()
    catalog, labels = snapshot.catalog, newer(snapshot.catalog, labels)
    platform = home(catalog, labels)
    return Exposure(
        spot=bool(platform) and catalog.platforms[platform].is_spot(labels),
        unprotected=_runs(pod, catalog) and _unprotected(pod, platform, catalog, age),
    )


def _runs(pod: StoredPod, catalog: Catalog) -> bool:
    if pod.owner is None:
        return False
    signed = catalog.workloads_signed((group_of(pod.owner.api_version), pod.owner.kind), ())
    return any(workload.name in RUNS for workload in signed)


def _unprotected(pod: StoredPod, platform: str, catalog: Catalog, age: float | None) -> bool:
    raw = pod.request().pod
    written = says(raw)
    length = written if written is not None else age
    return length is not None and length > LONG and bool(unprotected(raw, platform, age, catalog))
