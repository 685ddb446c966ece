"""The state of the watches of a cluster, for ``/readyz``, ``/policies`` and the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from telemetry.exposition import family


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


def collect_watches(watching: Iterable[Watching], rejected: tuple[int, int], writes: Writes) -> Iterator[Metric]:
    """Yield the metrics of the watches; none where no cluster is followed.

    ``rejected``: how many objects are not understood in their newest form, which are named in their status and in the log:
    (those whose last good form is in force, the others).
    """
    kinds = list(watching)
    if not kinds:
        return
    for name, text, values in (
        ("healthy", "1 while a kind is watched, 0 while it can't be.", [float(kind.healthy) for kind in kinds]),
        (
            "silent_seconds",
            "Seconds since the last message about a kind. A healthy watch gets one each minute.",
            [kind.silent for kind in kinds],
        ),
        ("objects", "Known objects of a kind.", [kind.objects for kind in kinds]),
        (
            "isolated_objects",
            "Objects of a kind whose newest version raises an error; the log names them.",
            [len(kind.isolated) for kind in kinds],
        ),
        (
            "unread_objects",
            "Objects kept by name only: too large, or over the limit of their namespace.",
            [kind.unread for kind in kinds],
        ),
    ):
        samples = (([kind.kind], value) for kind, value in zip(kinds, values, strict=True) if value is not None)
        yield family(GaugeMetricFamily, f"berth_watch_{name}", text, ["kind"], samples)
    for name, text in COUNTED.items():
        samples = (([kind.kind], kind.counts[name]) for kind in kinds)
        yield family(CounterMetricFamily, f"berth_watch_{name}", text, ["kind"], samples)
    yield family(
        GaugeMetricFamily,
        "berth_objects_rejected",
        "Berth's objects whose newest version is invalid, by which version is active.",
        ["acting"],
        [(["last_good"], rejected[0]), (["nothing"], rejected[1])],
    )
    yield GaugeMetricFamily("berth_lease_held", "1 for the replica that writes statuses and Events, else 0.", float(writes.held))
    results = [([result], getattr(writes, result)) for result in ("written", "lost", "failed")]
    yield family(CounterMetricFamily, "berth_status_writes", "Status writes of this replica, by result.", ["result"], results)
