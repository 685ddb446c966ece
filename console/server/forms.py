"""Forms that somebody sends: bounded, and of this site alone."""

from __future__ import annotations

from collections.abc import Collection

from starlette.requests import ClientDisconnect, Request

from console.server.query import QueryError

MOST_FORM = 256 * 2**10
"""Bytes of a form: a manifest that Helm made of a large chart, twice encoded."""


async def form(request: Request, origins: Collection[str] = (), most: int = MOST_FORM) -> str:
    """Return the body of a form, encoded as it was sent. ``origins``: where it may come from, besides the host that is asked.

    Raises QueryError where it is too large, no form, or sent from another site.
    """
    origin = request.headers.get("origin")
    if origin is not None and origin not in origins and origin.partition("://")[2] != request.headers.get("host"):
        raise QueryError("the form was sent from another site")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise QueryError("the request must be a form: Content-Type application/x-www-form-urlencoded")
    parts, size = [], 0
    try:
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > most:
                raise QueryError(f"the form is larger than {most >> 10} KiB: send less text")
    except ClientDisconnect:
        raise QueryError("the connection closed before the whole form arrived") from None
    return b"".join(parts).decode("utf-8", "replace")
