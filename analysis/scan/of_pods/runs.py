"""Training and other runs to an end that may be cut short: on spot capacity, or without a mark that keeps their
node, or without time to write a last checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from analysis.admission_preview import Admission
from analysis.scan.finding import Hit
from analysis.scan.seen import GpuNode, GpuPod, ScannedCluster
from catalog import Catalog
from kube import duration
from kube.pod import GRACE, Pod, PodError
from kube.scheduling import admits
from kube.templates import GRACE_SECONDS
from kube.tree import Raw, map_at
from policies.pods.annotations import DURATION
from policies.rules.disruption import lasts

LONG = 2 * 3600
"""Seconds from which a run is long: what the shipped training policy says (``longRuns.over``). An interruption of a shorter one costs less
than spot saves."""


def find(seen: ScannedCluster, admission: Admission) -> Iterator[Hit]:
    """Yield what is found of runs that have a node."""
    for pod in seen.pods:
        if pod.role != "run" or pod.node is None:
            continue
        admitted = admission.of(pod.stored).pod
        if (length := on_spot(pod, pod.raw, pod.node)) is not None:
            keys = seen.catalog.platforms[pod.node.platform].capacity_keys
            fixed = on_spot(pod, admitted, pod.node, keys) is None
            yield Hit("run-on-spot", pod, (("length", length), ("group", pod.node.group)), fixed, ("Node",))
        if lacks := unprotected(pod.raw, pod.node.platform, pod.age, seen.catalog):
            fixed = not unprotected(admitted, pod.node.platform, pod.age, seen.catalog)
            values = ("lacks", lacks), ("platform", pod.node.platform), ("removed", removed_marks(pod.raw, pod.node.platform, seen.catalog))
            yield Hit("run-unprotected", pod, values, fixed, ("Node",))


def on_spot(pod: GpuPod, raw: Raw, node: GpuNode, keys: Collection[str] = ()) -> str | None:
    """Return why a run is long for the spot node that it is on; None if it is not on one, is short, or keeps off such capacity by what it
    says of the labels ``keys``."""
    if not node.spot or not admits(raw, node.labels, keys):
        return None
    written = says(raw)
    if written is not None:
        return "says" if written > LONG else None
    return "runs" if pod.age is not None and pod.age > LONG else None


def says(raw: Raw) -> float | None:
    """Return the seconds that its author says that it runs."""
    found = duration.parse_duration(map_at(raw, "metadata", "annotations").get(DURATION))
    if found is not None:
        return float(found)
    deadline = map_at(raw, "spec").get("activeDeadlineSeconds")
    return float(deadline) if isinstance(deadline, int) and not isinstance(deadline, bool) else None


def unprotected(raw: Raw, platform: str, age: float | None, catalog: Catalog) -> tuple[str, ...]:
    """Return what a run lacks: the key of a mark against disruption where its platform removes nodes, and a grace of more than Kubernetes'
    own default. ``platform``: of its node; ``age``: seconds for which it exists, if known."""
    return (*_mark(raw, platform, age, catalog), *_grace(raw))


def _mark(raw: Raw, name: str, age: float | None, catalog: Catalog) -> Iterator[str]:
    platform = catalog.platforms.get(name)
    if platform is None or not platform.creates_nodes:
        return
    here = [protection for protection in catalog.protections if name in protection.platforms]
    for protection in here:
        value = map_at(raw, "metadata", protection.where).get(protection.key)
        if value is not None and not protection.removed and lasts(protection, str(value)) > (age or 0):
            return
    yield from [protection.key for protection in here if not protection.only_judged][:1]


def removed_marks(raw: Raw, name: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the marks of a pod that today's versions of its platform do not read."""
    removed = (protection for protection in catalog.protections if protection.removed and name in protection.platforms)
    return tuple(protection.key for protection in removed if protection.key in map_at(raw, "metadata", protection.where))


def _grace(raw: Mapping[str, Any]) -> Iterator[str]:
    try:
        grace = Pod({"spec": {GRACE: map_at(raw, "spec").get(GRACE)}}).grace
    except PodError:
        return
    if grace is None or grace <= GRACE_SECONDS:
        yield GRACE
