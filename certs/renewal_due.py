"""The renewal rule: one function, which returns the reason for a renewal."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from certs.authority import BACKDATE, KeyPair
from certs.names import normal


def renewal_reason(pair: KeyPair, names: Iterable[str], now: datetime, *, latest: datetime | None = None) -> str | None:
    """Return the reason why ``pair`` must be renewed, or None.

    It is due when less than a third of its lifetime is left, counted from when it was made, when it is not
    yet valid, or when a name is missing. For a CA, pass no names. ``latest`` is the latest possible expiry of
    a new certificate, that of its CA: where renewal gains nothing, a short remaining lifetime is no reason,
    or the last days of a CA would bring one leaf after the other.
    """
    start, end = pair.certificate.not_valid_before_utc, pair.certificate.not_valid_after_utc
    if now >= end:
        return f"it expired on {end:%Y-%m-%d %H:%M}Z"
    if now < start:
        return f"it is valid only from {start:%Y-%m-%d %H:%M}Z: the clock was ahead when it was issued, or is behind now"
    missing = sorted({normal(name) or name for name in names} - set(pair.names))
    if missing:
        return f"it does not name {', '.join(missing)}"
    if end - now < (end - start - BACKDATE) / 3 and (latest is None or end < latest):
        return f"less than a third of its lifetime is left: it expires on {end:%Y-%m-%d %H:%M}Z"
    return None
