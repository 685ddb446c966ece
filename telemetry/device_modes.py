"""How the nodes of a cluster offer their devices, and whether somebody maintains their labels, for the metrics, ``/readyz`` and the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from policies.facts.device_modes import Mode, nobody_writes, offered_twice
from policies.state.snapshot import Snapshot
from telemetry import log
from telemetry.exposition import family


def collect_device_modes(snapshot: Snapshot | None) -> Iterator[Metric]:
    """Yield the metrics of the snapshot in force; none before the first."""
    if snapshot is None:
        return
    counts = {(vendor, mode): count for vendor, mode, count in snapshot.advertised.nodes}
    yield family(
        GaugeMetricFamily,
        "berth_gpu_nodes",
        "Nodes by what offers their devices: a device plugin, DRA, or both.",
        ["vendor", "mode"],
        (  # 0 too: an alert on a series that is not there can't be told from one on a misspelt name
            ([vendor, mode], counts.get((vendor, mode), 0))
            for vendor in dict.fromkeys(vendor for vendor, _ in counts)
            for mode in get_args(Mode)
        ),
    )
    text = "Node labels that nothing maintains, so no term is written on them."
    yield GaugeMetricFamily("berth_labels_unmaintained", text, len(unmaintained(snapshot)))


def unmaintained(snapshot: Snapshot) -> frozenset[str]:
    """Return the label keys that nobody maintains: the same for every table."""
    return next((table.unmaintained for table in snapshot.tables.values()), frozenset())


def sentences(snapshot: Snapshot) -> Iterator[str]:
    """Yield what the platform team has to know of nodes, with what to type next."""
    yield from (offered_twice(one) for one in snapshot.advertised.twice)
    if keys := unmaintained(snapshot):
        yield nobody_writes(keys)


def tell(before: Snapshot | None, now: Snapshot) -> None:
    """Log what is new of it: another first node is nothing new."""
    if before is None or _known(before) != _known(now):
        for text in sentences(now):
            log.write("gpu_nodes", "warning", text=text)


def _known(snapshot: Snapshot) -> tuple[list[tuple[str, tuple[str, ...]]], frozenset[str]]:
    return [(one.driver, one.resources) for one in snapshot.advertised.twice], unmaintained(snapshot)
