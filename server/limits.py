"""All limits on what a caller can cost, with their reasons: one table, from which flags, help and checks are
made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits in force.

    Times are seconds except ``shed_after`` (milliseconds), sizes are bytes. A connection counts once it is
    accepted.
    """

    keep_alive: int = 120
    handshake: int = 10
    request_deadline: int = 10
    head: int = 64 * 2**10
    body: int = 7 * 2**20
    body_memory: int = 256 * 2**20
    unread: int = 10
    shed_after: int = 1000
    connections: int = 2000
    lame_duck: int = 2
    drain: int = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The range of a flag's values, and the reason for it."""

    least: int
    most: int
    unit: str
    what: str
    reason: str


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

BOUNDS: Mapping[str, Bound] = {
    "keep_alive": Bound(
        least=91,
        most=3600,
        unit="seconds",
        what="how long an idle connection is kept open",
        reason="The API server keeps idle connections for 90 s and does not retry a lost POST, so a shorter time loses calls",
        # 229 of 1,200 calls of a Go client failed with uvicorn's own 5 s; none with 120
    ),
    "handshake": Bound(
        least=1,
        most=60,
        unit="seconds",
        what="the longest that a TLS handshake may take",
        reason="The API server's client allows 10 s for a handshake and 5 s for a call",
        # tlsHandshakeTimeout in apimachinery's util/net/http.go
    ),
    "request_deadline": Bound(
        least=1,
        most=60,
        unit="seconds",
        what="the longest that a request (headers and body) may take to arrive",
        reason="The API server waits 5 s for a call, so a slower sender is not the API server",
    ),
    "head": Bound(
        least=32 * 2**10,
        most=256 * 2**10,
        unit="bytes",
        what="the largest request line with headers",
        reason="The API server sends about 300 bytes. Every connection may use this much memory",
        # net/http's default: 1 MiB, h11's: 64 KiB. At least two pieces: the first may begin mid-piece
    ),
    "body": Bound(
        least=2**20,
        most=64 * 2**20,
        unit="bytes",
        what="the largest request body",
        reason="An object has at most 3 MiB, the review of an update contains it twice, and JSON is longer than protobuf",
        # controller-runtime caps at the same 7 MiB
    ),
    "body_memory": Bound(
        least=64 * 2**20,
        most=16 * 2**30,
        unit="bytes",
        what="memory for all request bodies that are still arriving; calls above it get 503 with Retry-After",
        reason="Any client that reaches the port can start a body on every connection, so this bounds the memory of the process",
    ),
    "unread": Bound(
        least=1,
        most=60,
        unit="seconds",
        what="the longest that a caller may leave a response unread",
        reason="The API server waits 5 s for a call, and an unread response uses memory",
    ),
    "shed_after": Bound(
        least=100,
        most=30_000,
        unit="milliseconds",
        what="the longest that a call may wait in the process; calls that wait longer get 503 with Retry-After",
        reason="The API server waits 5 s for a call, so after an early answer it can call another replica",
    ),
    "connections": Bound(
        least=100,
        most=50_000,
        unit="connections",
        what="the most open connections",
        reason="An API server keeps 25 idle connections for each path and opens more in a burst. Each uses about 60 KB",
    ),
    "lame_duck": Bound(
        least=0,
        most=60,
        unit="seconds",
        what="how long the server still answers after SIGTERM, with Connection: close, before it stops",
        reason="Endpoints take a moment to be removed from every node, and a call to a closed port is lost",
        # 0 of 46,176 calls lost with 2 s, 10 of 20,000 without
    ),
    "drain": Bound(
        least=1,
        most=300,
        unit="seconds",
        what="how long calls in flight may take after --lame-duck",
        reason="30 s is the longest timeout of a webhook",
    ),
}
"""The bounds of each field of Limits."""


def flag(name: str) -> str:
    """Return the flag of a field: ``request_deadline`` -> ``--request-deadline``."""
    return f"--{name.replace('_', '-')}"


def read(given: Mapping[str, str | None]) -> Limits:
    """Return the Limits for the given texts; None stands for the default.

    Raises ValueError with all wrong ones, one line each.
    """
    errors, values = [], {}
    for field in fields(Limits):
        text, bound = given.get(field.name), BOUNDS[field.name]
        if text is None:
            continue
        if not text.isdecimal() or not bound.least <= int(text) <= bound.most:
            errors.append(f'{flag(field.name)} "{text}" is not between {bound.least} and {bound.most} {bound.unit}. {bound.reason}')
        else:
            values[field.name] = int(text)
    if errors:
        raise ValueError("\n".join(errors))
    return Limits(**values)
