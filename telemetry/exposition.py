"""The text of metrics, in the form that a scraper asks for."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return body and content type for a scrape with this Accept header: OpenMetrics if requested, else the text
    format."""
    try:
        encode, content_type = choose_encoder(accept)
    except TypeError:  # prometheus_client 0.26 compares a version that is no number with one that is
        encode, content_type = choose_encoder("")
    return encode(registry), content_type
