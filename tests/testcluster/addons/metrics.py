"""Pages of Prometheus metrics, in the text format."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


def samples(page: str, *names: str) -> Iterator[Sample]:
    """Those of these names (a histogram's with _bucket, _sum or _count).

    Only their lines are parsed, and without their types: an API server's page has megabytes, and the parser renames what it knows to be a
    counter.
    """
    starts = tuple(f"{name}{end}" for name in names for end in "{ ")
    text = "".join(f"{line}\n" for line in page.splitlines() if line.startswith(starts))
    for family in text_string_to_metric_families(text):
        yield from family.samples


def total(page: str, name: str, /, **labels: str) -> float:
    """The sum of a metric's samples that have these labels; 0.0 where there is none."""
    return sum((sample.value for sample in samples(page, name) if labels.items() <= sample.labels.items()), 0.0)
