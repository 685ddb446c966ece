"""What a decision reads of a pod, as JSON: the key of what is kept, and the measure of how long judging may take."""

from __future__ import annotations

import orjson

from policies.extract import Reads, extract
from policies.pod import Raw
from webhook.review import Unreadable

MOST_SEEN = 64 * 2**10
"""Bytes of what a decision reads of a pod: 1 KiB usually, 15 with long lists of instance types."""


def seen(pod: Raw, reads: Reads) -> bytes:
    """What a decision reads of this pod, as JSON. Raises Unreadable."""
    try:
        return orjson.dumps(extract(pod, reads))
    except orjson.JSONEncodeError:  # it reads 1,024 levels and writes 254; no field that is read has ten
        raise Unreadable("request.object is nested deeper than 254 levels") from None
