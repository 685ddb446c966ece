"""The names a certificate can be issued for: DNS names and IP addresses, in the form that certificates hold.

Pure. Names come from options, where a typing error would otherwise be found only by the first caller.
"""

from __future__ import annotations

import ipaddress
import re

LONGEST = 253
"""The most characters of a DNS name: RFC 1035 section 2.3.4 allows 255 bytes on the wire, of which two are a
length and the root."""

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
"""RFC 1123 section 2.1: letters, digits and inner hyphens, at most 63."""
_DNS_NAME = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)+")
"""Matches names such as ``10.0.0.256``: every label is valid, but RFC 1123 reserves this form for addresses.
"""


def normal(name: str) -> str | None:
    """Return the name as a certificate holds it (``0::1`` as ``::1``, an address without its zone), or None
    if it is neither a DNS name nor an IP address.

    The first label may be ``*``: callers let it stand for exactly one label (RFC 6125 section 6.4.3).
    """
    try:
        return str(ipaddress.ip_address(ipaddress.ip_address(name).packed))
    except ValueError:
        fits = len(name) <= LONGEST and _DNS_NAME.fullmatch(name) and not _NUMBERS.fullmatch(name)
        return name if fits else None
