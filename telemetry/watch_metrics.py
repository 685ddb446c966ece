"""The state of the watches of a cluster, for ``/readyz``, ``/policies`` and the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """The state of the watch of one kind, at one moment."""

    kind: str
    synced: bool
    """True once all objects of the kind have been listed."""
    healthy: bool
    error: str
    """The reason why it is not healthy; "" if it is."""
    without: str
    """What Berth does as the kind was never read, as a clause; "" once it was, or where it is required."""
    silent: float | None
    """Seconds since anything was heard of it; None: never."""
    objects: int
    isolated: tuple[str, ...]
    """The ids of objects whose newest form can't be applied."""
    unread: int
    """The number of objects of which only the name is known, as they are too large, or too many in a namespace."""
    counts: Mapping[str, int]
    """The number of lists, watches, events and errors so far."""
    digest: Callable[[], str]
    """Returns the digest of what is known of it: the same for two replicas that know the same."""


def nothing() -> Iterator[Watching]:
    """Yield nothing, for policies from files."""
    yield from ()


COUNTED = {
    "lists": "Full lists of a kind: at the start and after errors.",
    "watches": "Watches started.",
    "events": "Changes received.",
    "errors": "Failed lists and watches.",
}
"""The keys of ``Watching.counts``, and their meaning."""


class Writes(NamedTuple):
    """The status writes so far."""

    held: bool = False
    """True if this replica is currently the one that writes."""
    written: int = 0
    lost: int = 0
    """Writes lost because another writer was faster, or the object is gone."""
    failed: int = 0


class WatchCollector(Collector):
    """The metrics of the watches, computed at each scrape."""

    def __init__(
        self, watching: Callable[[], Iterator[Watching]], denied: Callable[[], tuple[int, int]], writes: Callable[[], Writes]
    ) -> None:
        """``denied`` returns how many objects are not understood in their newest form: (those whose last
        good form is in force, the others)."""
        self._watching = watching
        self._denied = denied
        self._writes = writes

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; none where no cluster is followed."""
        kinds = list(self._watching())
        if not kinds:
            return
        healthy = GaugeMetricFamily("berth_watch_healthy", "1 while a kind is watched, 0 while it can't be.", labels=["kind"])
        silent = GaugeMetricFamily(
            "berth_watch_silent_seconds",
            "Seconds since the last message about a kind. A healthy watch gets one each minute.",
            labels=["kind"],
        )
        objects = GaugeMetricFamily("berth_watch_objects", "Known objects of a kind.", labels=["kind"])
        isolated = GaugeMetricFamily(
            "berth_watch_isolated_objects",
            "Objects of a kind whose newest version raises an error; the log names them.",
            labels=["kind"],
        )
        unread = GaugeMetricFamily(
            "berth_watch_unread_objects",
            "Objects kept by name only: too large, or over the limit of their namespace.",
            labels=["kind"],
        )
        for one in kinds:
            unread.add_metric([one.kind], one.unread)
            isolated.add_metric([one.kind], len(one.isolated))
            healthy.add_metric([one.kind], float(one.healthy))
            if one.silent is not None:
                silent.add_metric([one.kind], one.silent)
            objects.add_metric([one.kind], one.objects)
        yield from (healthy, silent, objects, isolated, unread)
        for name, meaning in COUNTED.items():
            counter = CounterMetricFamily(f"berth_watch_{name}", meaning, labels=["kind"])
            for one in kinds:
                counter.add_metric([one.kind], one.counts[name])
            yield counter
        yield self._not_understood()
        yield from self._written()

    def _written(self) -> Iterator[Metric]:
        writes = self._writes()
        lease = GaugeMetricFamily("berth_lease_held", "1 for the replica that writes statuses and Events, else 0.")
        lease.add_metric([], float(writes.held))
        counter = CounterMetricFamily("berth_status_writes", "Status writes of this replica, by result.", labels=["result"])
        for result in ("written", "lost", "failed"):
            counter.add_metric([result], getattr(writes, result))
        yield from (lease, counter)

    def _not_understood(self) -> Metric:
        """Return the count of denied objects, which are named in their status and in the log."""
        found = GaugeMetricFamily(
            "berth_objects_rejected", "Berth's objects whose newest version is invalid, by which version is active.", labels=["acting"]
        )
        last_good, none = self._denied()
        found.add_metric(["last_good"], last_good)
        found.add_metric(["nothing"], none)
        return found
