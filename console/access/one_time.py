"""A console on a laptop: whoever opens the printed address once is let in, from then on by a cookie; nobody else on the machine, and no
page of another site."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from analysis.world.world import World
from console.server.query import Query
from console.world.scope import EVERYTHING, ListedKind, Scope

COOKIE = "berth_console"
FIELD = "token"
LASTS = 12 * 3600
"""Seconds: a working day."""
_OPEN_AGAIN = (
    "This address was already opened, or its cookie has expired.\n\nPress Enter in the terminal of the console to print a new address, "
    "or restart the console.\nSafari keeps no Secure cookie for http://127.0.0.1: use Firefox, Chrome or Edge."
)


@dataclass(frozen=True, slots=True)
class LocalVisitor:
    """Whoever has the cookie."""

    name: str = ""
    leaves: bool = False

    async def scope(self, world: World, named: Collection[str] = ()) -> Scope:
        """Return everything: what their kubeconfig may not list was not read."""
        return EVERYTHING

    async def may_list(self, kinds: Iterable[ListedKind], namespace: str) -> Collection[ListedKind]:
        """Return all of them, likewise."""
        return [*kinds]


class OneTimeToken:
    """The gate of a laptop. ``hosts``: values of the header Host by which it may be asked, so that no name of somebody else's that
    resolves to this address (DNS rebinding) reaches it."""

    def __init__(self, hosts: frozenset[str]) -> None:
        self._hosts = hosts
        self._token: str | None = None
        self._session = secrets.token_urlsafe(32)

    def token(self) -> str:
        """Return a new token; the one before, if nobody used it, opens nothing any more."""
        self._token = secrets.token_urlsafe(24)
        return self._token

    async def admit(self, request: Request) -> LocalVisitor | Response:
        """Let in whoever has the cookie; a token is exchanged for one, once."""
        if request.headers.get("host", "") not in self._hosts:
            return PlainTextResponse("The console does not accept this host name. Use the address that it printed.\n", 421)
        if secrets.compare_digest(request.cookies.get(COOKIE, "").encode(), self._session.encode()):
            return _without_token(request) if FIELD in request.query_params else LocalVisitor()
        given, expected = request.query_params.get(FIELD, ""), self._token
        if expected is None or not secrets.compare_digest(given.encode(), expected.encode()):
            return PlainTextResponse(f"{_OPEN_AGAIN}\n", 401)
        self._token = None
        answer = _without_token(request)
        answer.set_cookie(COOKIE, self._session, max_age=LASTS, httponly=True, secure=True, samesite="lax")
        return answer


def _without_token(request: Request) -> RedirectResponse:
    """Send a browser to the same address without the token, which would else stay in its history."""
    return RedirectResponse(Query.of(request.url.query).link(request.url.path, **{FIELD: ""}), 303)
