"""By which names the console may be asked, so that a name of somebody else's that leads here (DNS rebinding), or one that a request
makes up, gets no page."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

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
