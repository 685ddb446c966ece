"""What a browser does with the console over TLS: it keeps the cookie, and follows nothing by itself."""

from __future__ import annotations

import html
import http.client
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode

from tests.testcluster.calls import PATIENCE

_LINK = re.compile(r'(?:href|hx-get)="(/[^"]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def plain(self) -> str:
        """The text without the escapes of HTML."""
        return html.unescape(self.text)

    @property
    def links(self) -> list[str]:
        """Addresses of the console that the page names."""
        return [html.unescape(one) for one in _LINK.findall(self.text)]


class Browser:
    """One person's, with one jar of cookies."""

    def __init__(self, port: int, ca: Path) -> None:
        self._port = port
        self._ca = ca
        self.cookies: dict[str, str] = {}

    def get(self, address: str, **headers: str) -> Seen:
        """Ask for an address; ``hx_request`` is the header ``Hx-Request``."""
        return self._asked("GET", address, None, headers)

    def post(self, address: str, fields: Mapping[str, str], **headers: str) -> Seen:
        """Send a form."""
        return self._asked("POST", address, urlencode(fields), {"content_type": "application/x-www-form-urlencoded", **headers})

    def sign_in(self, token: str, back: str = "/impact") -> Seen:
        """Send the form of the login page."""
        return self.post("/login", {"token": token, "next": back})

    def _asked(self, method: str, address: str, body: str | None, headers: Mapping[str, str]) -> Seen:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port, context=ssl.create_default_context(cafile=str(self._ca)), timeout=PATIENCE
        )
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            sent.setdefault("cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        try:
            connection.request(method, address, body, sent)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        for name, morsel in SimpleCookie(found.get("set-cookie", "")).items():
            if morsel["max-age"] == "0":
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = morsel.value
        return Seen(status=answer.status, headers=found, text=text)
