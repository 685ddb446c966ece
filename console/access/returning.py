"""The page to go back to after signing in: one of the console's own, whatever an address says."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote, urlsplit

from starlette.requests import Request

LONGEST = 4000
"""Characters: an address of a page has some hundred."""
HOME = "/"


def local(text: str, paths: Collection[str]) -> str:
    """Return the path and the query of an address if it leads to one of these pages, "/" for all others. Nothing of what stands before
    the path is ever returned."""
    if len(text) > LONGEST or not text.isascii() or not text.isprintable() or "\\" in text:
        return HOME
    try:
        parts = urlsplit(text)
    except ValueError:
        return HOME
    if parts.path not in paths:
        return HOME
    return f"{parts.path}?{quote(parts.query, safe=_QUERY)}" if parts.query else parts.path


_QUERY = "=&%+/:;,.@!$'()*~?-_[]"
"""What may stand in a query as it is (RFC 3986, 3.4)."""


def asked_page(request: Request, paths: Collection[str]) -> str:
    """Return the page that somebody has before them: that of the browser where a part of it was asked for (htmx tells it)."""
    if request.headers.get("hx-request") == "true":
        return local(request.headers.get("hx-current-url", ""), paths)
    query = request.url.query
    return local(f"{request.url.path}?{query}" if query else request.url.path, paths)
