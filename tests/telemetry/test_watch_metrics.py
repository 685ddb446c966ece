"""What the metrics tell of a cluster that is followed."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from telemetry.exposition import Scraped
from telemetry.watch_metrics import Watching, Writes, collect_watches
from tests.support.calls.counted_metrics import FOLLOWED


def samples(*watching: Watching, writes: Writes = Writes()) -> dict[tuple[str, str], float]:  # noqa: B008 - immutable
    """(metric, value of its label) -> value."""
    registry = CollectorRegistry()
    registry.register(Scraped(lambda: collect_watches(watching, (1, 2), writes)))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {(sample.name, "".join(sample.labels.values())): sample.value for family in families for sample in family.samples}


def test_each_kind_is_told() -> None:
    """Whether it is followed, since when nothing was heard (if ever), and what came."""
    found = samples(*FOLLOWED)
    assert (found["berth_watch_healthy", "GPUPolicy"], found["berth_watch_healthy", "NodePool"]) == (1, 0)
    assert found["berth_watch_silent_seconds", "GPUPolicy"] == 2.5
    assert ("berth_watch_silent_seconds", "NodePool") not in found
    assert (found["berth_watch_objects", "GPUPolicy"], found["berth_watch_events_total", "GPUPolicy"]) == (7, 9)
    assert found["berth_watch_errors_total", "NodePool"] == 3


def test_what_is_not_understood_is_counted() -> None:
    """By what of it acts."""
    found = samples(*FOLLOWED)
    assert (found["berth_objects_rejected", "last_good"], found["berth_objects_rejected", "nothing"]) == (1, 2)


def test_the_writer_is_told() -> None:
    """Of several replicas one has 1."""
    found = samples(*FOLLOWED, writes=Writes(held=True, written=3, lost=1))
    assert found["berth_lease_held", ""] == 1
    assert [found["berth_status_writes_total", result] for result in ("written", "lost", "failed")] == [3, 1, 0]


def test_files_have_none_of_it() -> None:
    """Where no cluster is followed there is nothing to alarm on."""
    assert samples() == {}
