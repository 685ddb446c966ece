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
        what="an idle connection is kept for",
        reason="the API server keeps idle connections 90 s and never sends a lost POST again: closing before it does loses calls",
        # 229 of 1,200 calls of a Go client failed with uvicorn's own 5 s; none with 120
    ),
    "handshake": Bound(
        least=1,
        most=60,
        unit="seconds",
        what="a TLS handshake may take",
        reason="the API server's client gives it 10 s and a call 5 s in all; who takes longer only holds a connection",
        # tlsHandshakeTimeout in apimachinery's util/net/http.go
    ),
    "request_deadline": Bound(
        least=1,
        most=60,
        unit="seconds",
        what="a request may take to arrive, headers and body",
        reason="the API server waits 5 s in all; who sends slower holds a connection and is no API server",
    ),
    "head": Bound(
        least=32 * 2**10,
        most=256 * 2**10,
        unit="bytes",
        what="a request line and its headers may have",
        reason="the API server sends about 300; every connection may hold one, and is cut by the piece (16 KiB) that goes past it",
        # net/http's default: 1 MiB, h11's: 64 KiB. At least two pieces: the first may begin mid-piece
    ),
    "body": Bound(
        least=2**20,
        most=64 * 2**20,
        unit="bytes",
        what="a body may have",
        reason="an object has at most 3 MiB, an update's review holds it twice, and JSON is longer than protobuf",
        # controller-runtime caps at the same 7 MiB
    ),
    "body_memory": Bound(
        least=64 * 2**20,
        most=16 * 2**30,
        unit="bytes",
        what="bodies that have not come whole may hold together; a call over it gets 503 with Retry-After",
        reason="whoever reaches the port may begin bodies on every connection, and the process must not grow with them",
    ),
    "unread": Bound(
        least=1,
        most=60,
        unit="seconds",
        what="a caller may leave answers unread that the kernel does not take any more",
        reason="the API server waits 5 s for one in all; who does not read holds what is answered",
    ),
    "shed_after": Bound(
        least=100,
        most=30_000,
        unit="milliseconds",
        what="the process may be behind; calls that wait longer get 503 with Retry-After",
        reason="the API server waits 5 s in all: told within 2 s, it still has time for another replica",
    ),
    "connections": Bound(
        least=100,
        most=50_000,
        unit="connections",
        what="are open at once",
        reason="an API server keeps 25 idle for each path and opens more in a burst; each costs some 60 KB",
    ),
    "lame_duck": Bound(
        least=0,
        most=60,
        unit="seconds",
        what="answers go on with Connection: close after SIGTERM, before the server stops",
        reason="endpoints take a moment to be withdrawn everywhere; a call to a closed port is lost",
        # 0 of 46,176 calls lost with 2 s, 10 of 20,000 without
    ),
    "drain": Bound(
        least=1,
        most=300,
        unit="seconds",
        what="calls in flight get after that",
        reason="30 s is the longest timeout that a webhook may have",
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
            errors.append(f'{flag(field.name)} "{text}" is not of {bound.least} to {bound.most} {bound.unit}: {bound.reason}')
        else:
            values[field.name] = int(text)
    if errors:
        raise ValueError("\n".join(errors))
    return Limits(**values)
