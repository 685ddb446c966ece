"""The host names by which the console may be asked, and the pages to which a sign-in may return: a name of somebody else's that leads here
(DNS rebinding), or an address that a request makes up, gets no page."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""As `kubectl port-forward` leads to it, from any port."""


class Hosts:
    """``names``: of this port, such as that of a Service; ``url``: of a proxy in front of it, ``https://console.example``; "" if there
    is none."""

    def __init__(self, names: Iterable[str], url: str = "") -> None:
        self._names = {*map(str.lower, names), *LOOPBACK}
        self._url = urlsplit(url)
        self.origins = frozenset({url}) if url else frozenset()
        """Where forms may come from, besides the host that is asked."""

    def denial(self, request: Request) -> Response | None:
        """Return the answer to a request by another name; None if it is one of these."""
        if self._is_known(request.headers.get("host", "")):
            return None
        return PlainTextResponse("The console does not accept this host name. Its address is set with --url or --names.\n", 421)

    def _is_known(self, host: str) -> bool:
        try:
            asked = urlsplit(f"//{host}")
            name, port = asked.hostname, asked.port
        except ValueError:
            return False
        if not name or asked.netloc != host or asked.username is not None or asked.path or asked.query:
            return False
        return name in self._names or (name == self._url.hostname and (port or 443) == (self._url.port or 443))


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
