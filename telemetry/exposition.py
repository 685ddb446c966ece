"""Metrics that are computed at each scrape, and the text of all metrics in the form that a scraper asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

Family = TypeVar("Family", CounterMetricFamily, GaugeMetricFamily)


class Scraped(Collector):
    """The families that a function yields at each scrape."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterator[Metric]:
        """Yield them."""
        yield from self._collect()


def family(kind: type[Family], name: str, text: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], float]]) -> Family:
    """Return a family of samples, each with the values of its labels."""
    filled = kind(name, text, labels=labels)
    for values, number in samples:
        filled.add_metric(values, number)
    return filled


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return body and content type for a scrape with this Accept header: OpenMetrics if requested, else the text
    format."""
    try:
        encode, content_type = choose_encoder(accept)
    except TypeError:  # prometheus_client 0.26 compares a version that is no number with one that is
        encode, content_type = choose_encoder("")
    return encode(registry), content_type
