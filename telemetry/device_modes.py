"""How the nodes of a cluster offer their devices, and whether somebody maintains their labels, for the metrics, ``/readyz`` and the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import get_args

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from policies.facts.device_modes import Mode, nobody_writes, offered_twice
from policies.state.snapshot import Snapshot
from telemetry import log


class DeviceModes(Collector):
    """The metrics of the snapshot in force, computed at each scrape."""

    def __init__(self, snapshot: Callable[[], Snapshot | None]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; none before the first snapshot."""
        snapshot = self._snapshot()
        if snapshot is None:
            return
        nodes = GaugeMetricFamily(
            "berth_gpu_nodes",
            "Nodes by what offers their devices: a device plugin, DRA, or both.",
            labels=["vendor", "mode"],
        )
        counts = {(vendor, mode): count for vendor, mode, count in snapshot.advertised.nodes}
        for vendor in dict.fromkeys(vendor for vendor, _ in counts):
            for mode in get_args(Mode):  # 0 too: an alert on a series that is not there can't be told from one on a misspelt name
                nodes.add_metric([vendor, mode], counts.get((vendor, mode), 0))
        keys = GaugeMetricFamily("berth_labels_unmaintained", "Node labels that nothing maintains, so no term is written on them.")
        keys.add_metric([], len(unmaintained(snapshot)))
        yield from (nodes, keys)


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
