"""All limits on what a caller can cost, with their reasons: one table, from which flags, help and checks are
made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Bound:
    """The range of a flag's values, and the reason for it."""

    least: int
    most: int
    unit: str
    what: str
    reason: str


def _flag(default: int, *bound: Any) -> int:
    """Return the field of a limit that a flag sets. ``bound``: the fields of its ``Bound``."""
    value: int = field(default=default, metadata={"bound": Bound(*bound)})
    return value


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits in force.

    Times are seconds except ``shed_after`` (milliseconds), sizes are bytes. A connection counts once it is
    accepted.
    """

    keep_alive: int = _flag(
        120, 91, 3600, "seconds", "how long an idle connection is kept open",
        # 229 of 1,200 calls of a Go client failed with uvicorn's own 5 s; none with 120
        "The API server keeps idle connections for 90 s and does not retry a lost POST, so a shorter time loses calls",
    )
    handshake: int = _flag(
        10, 1, 60, "seconds", "the longest that a TLS handshake may take",
        "The API server's client allows 10 s for a handshake and 5 s for a call",  # tlsHandshakeTimeout in apimachinery's util/net/http.go
    )
    request_deadline: int = _flag(
        10, 1, 60, "seconds", "the longest that a request (headers and body) may take to arrive",
        "The API server waits 5 s for a call, so a slower sender is not the API server",
    )
    head: int = _flag(
        64 * 2**10, 32 * 2**10, 256 * 2**10, "bytes", "the largest request line with headers",
        # net/http's default: 1 MiB, h11's: 64 KiB. At least two pieces: the first may begin mid-piece
        "The API server sends about 300 bytes. Every connection may use this much memory",
    )
    body: int = _flag(
        7 * 2**20, 2**20, 64 * 2**20, "bytes", "the largest request body",
        # controller-runtime caps at the same 7 MiB
        "An object has at most 3 MiB, the review of an update contains it twice, and JSON is longer than protobuf",
    )
    body_memory: int = _flag(
        256 * 2**20, 64 * 2**20, 16 * 2**30, "bytes",
        "memory for all request bodies that are still arriving; calls above it get 503 with Retry-After",
        "Any client that reaches the port can start a body on every connection, so this bounds the memory of the process",
    )
    unread: int = _flag(
        10, 1, 60, "seconds", "the longest that a caller may leave a response unread",
        "The API server waits 5 s for a call, and an unread response uses memory",
    )
    shed_after: int = _flag(
        1000, 100, 30_000, "milliseconds",
        "the longest that a call may wait in the process; calls that wait longer get 503 with Retry-After",
        "The API server waits 5 s for a call, so after an early answer it can call another replica",
    )
    connections: int = _flag(
        2000, 100, 50_000, "connections", "the most open connections",
        "An API server keeps 25 idle connections for each path and opens more in a burst. Each uses about 60 KB",
    )
    lame_duck: int = _flag(
        2, 0, 60, "seconds", "how long the server still answers after SIGTERM, with Connection: close, before it stops",
        # 0 of 46,176 calls lost with 2 s, 10 of 20,000 without
        "Endpoints take a moment to be removed from every node, and a call to a closed port is lost",
    )
    drain: int = _flag(
        30, 1, 300, "seconds", "how long calls in flight may take after --lame-duck",
        "30 s is the longest timeout of a webhook",
    )
# fmt: on


BOUNDS: Mapping[str, Bound] = {each.name: each.metadata["bound"] for each in fields(Limits)}
"""The bounds of each field of Limits."""
UID_BYTES = 4096
"""Bytes of a review over the cap that are kept for its uid, the first field of the request, after 90 bytes.
"""
CROWDED = 2
"""Seconds that a caller over the limit of connections gets to send the call that is answered with 503."""
GOODBYE = 2
"""Seconds that a connection gets to end after the last answer.

The API server ends it at once, and a caller that is still sending what was rejected has the answer after a
round trip.
"""
TURNED_AWAY = 64
"""Connections over the limit that are told to come back at one time; further ones are closed without an
answer."""
NO_PAGE_READS = 2**16
"""Bytes from which on a body on the second port is rejected unread; no page there reads a body."""
HEALTH_CONNECTIONS = 50
"""Connections of the second port: a kubelet, a few Prometheus servers and a person."""


def flag(name: str) -> str:
    """Return the flag of a field: ``request_deadline`` -> ``--request-deadline``."""
    return f"--{name.replace('_', '-')}"


def read_limits(given: Mapping[str, str | None]) -> Limits:
    """Return the Limits for the given texts; None stands for the default.

    Raises ValueError with all wrong ones, one line each.
    """
    errors, values = [], {}
    for name, bound in BOUNDS.items():
        text = given.get(name)
        if text is None:
            continue
        if not text.isdecimal() or not bound.least <= int(text) <= bound.most:
            errors.append(f'{flag(name)} "{text}" is not between {bound.least} and {bound.most} {bound.unit}. {bound.reason}')
        else:
            values[name] = int(text)
    if errors:
        raise ValueError("\n".join(errors))
    return Limits(**values)
