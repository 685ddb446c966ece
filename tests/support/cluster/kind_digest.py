"""The digest of the objects of a kind, as a replica that follows it should have it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from kube.tree import Raw


def digest_of(objects: Iterable[Raw]) -> str:
    """Return the sum of the hashes of ``namespace/name@resourceVersion`` (``DeltaQueue.digest``)."""
    hashes = (hashlib.blake2b(_title(value["metadata"]).encode(), digest_size=8).digest() for value in objects)
    return f"{sum(map(int.from_bytes, hashes)) % 2**64:016x}"


def _title(metadata: Raw) -> str:
    return f"{metadata.get('namespace') or ''}/{metadata['name']}@{metadata['resourceVersion']}"
