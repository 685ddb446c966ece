"""The gate of a console in a cluster: a token of the cluster is exchanged for a session, or sent with every request by a proxy."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from analysis.world.world import World
from console.access.attempts import Attempts
from console.access.hosts import Hosts, asked_page
from console.access.people import People, Person, expiry
from console.access.rights import Rights
from console.access.sessions import Session, Sessions
from console.world.scope import ListedKind, Scope
from documents.printable import cut
from telemetry import log

COOKIE = "__Host-berth"
"""The prefix makes browsers take it only with Secure and Path=/ and without Domain, so that no other host can set it (RFC 6265bis)."""
AGAIN = 60.0
"""Seconds after which the API server is asked again who has a token: one that was revoked shows nothing after that."""
MOST_BEARERS = 512
"""Tokens sent by a proxy of which it is remembered, by their hashes, whose they are."""
MOST_REMEMBERED = 4096
"""Hashes of checked tokens that are remembered, valid or invalid."""
BAD = 10.0
"""Seconds for which a token that is nobody's is not checked again."""
LOGIN, LOGOUT = "/login", "/logout"


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Somebody whom the API server knows."""

    person: Person
    leaves: bool
    _rights: Rights

    @property
    def name(self) -> str:
        return self.person.name

    async def scope(self, world: World, named: Collection[str] = ()) -> Scope:
        """Return what they may list. Raises Unreachable."""
        return await self._rights.of(self.person, world, named)

    async def may_list(self, kinds: Iterable[ListedKind], namespace: str) -> Collection[ListedKind]:
        """Return those of the kinds that they may list in a namespace. Raises Unreachable."""
        return await self._rights.may_list(self.person, kinds, namespace)


class SignIn:
    """The gate. ``paths``: the addresses of all pages, of which one may be returned to."""

    def __init__(
        self,
        people: People,
        rights: Rights,
        sessions: Sessions,
        hosts: Hosts,
        paths: Collection[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._people, self._rights = people, rights
        self.sessions, self.hosts, self.paths = sessions, hosts, frozenset(paths)
        self._clock = clock
        self._attempts = Attempts(clock)
        self._good: OrderedDict[bytes, float] = OrderedDict()
        """Hashes of tokens that were somebody's when they were checked last."""
        self._bad: OrderedDict[bytes, float] = OrderedDict()
        """Hashes of tokens that were nobody's, and until when that is believed."""
        self._bearers: OrderedDict[bytes, tuple[Person, float]] = OrderedDict()

    async def admit(self, request: Request) -> SignedIn | Response:
        """Let in whoever has a session or sends a token. Raises Unreachable."""
        if (denial := self.hosts.denial(request)) is not None:
            return denial
        if (token := bearer(request)) is not None:
            return await self._of_bearer(request, token)
        person = await self.of_session(request)
        return self._to_login(request) if person is None else SignedIn(person, leaves=True, _rights=self._rights)

    async def of_session(self, request: Request) -> Person | None:
        """Return whose session the cookie names; None if there is none any more. Raises Unreachable."""
        id_ = request.cookies.get(COOKIE, "")
        session = self.sessions.find(id_) if id_ else None
        if session is None:
            return None
        async with session.reviewing:
            return session.person if self._clock() - session.reviewed < AGAIN else await self._reviewed(id_, session)

    async def _reviewed(self, id_: str, session: Session) -> Person | None:
        if self.sessions.find(id_) is not session:  # it ended while another request asked
            return None
        person = await self._people.of(self.sessions.token(id_))
        if person is None or person.name != session.person.name:
            self.sessions.end(id_)
            log.write("session_ended", user=cut(session.person.name), reason="the API server no longer accepts its token")
            return None
        session.person, session.reviewed = person, self._clock()
        return person

    async def tried(self, request: Request, token: str) -> Person | Response | None:
        """Return the owner of a token, None if it is invalid, or a 429 response. Raises Unreachable.

        A token that was valid before is checked at once. Any other waits for its turn (``attempts``).
        """
        key, address = _hash(token), request.client.host if request.client else ""
        if key in self._good:  # no guess: whatever others try, it is checked at once
            return await self._checked(key, token)
        if self._clock() < self._bad.get(key, 0.0):
            return None
        async with self._attempts.turn(address) as attempt:
            if not attempt.has_turn:
                seconds = self._attempts.retry_after
                text = f"Too many invalid tokens were tried. Try again in {seconds} seconds.\n"
                return PlainTextResponse(text, 429, {"Retry-After": str(seconds)})
            person = await self._checked(key, token)
            attempt.failed = person is None
        if person is None:
            log.write("login_denied", "warning", address=address)
        return person

    async def _checked(self, key: bytes, token: str) -> Person | None:
        """Return who has a token, and remember whether anybody does. Raises Unreachable."""
        person = await self._people.of(token)
        if person is None:
            self._good.pop(key, None)
            _remember(self._bad, key, self._clock() + BAD)
        else:
            _remember(self._good, key, 0.0)
        return person

    async def _of_bearer(self, request: Request, token: str) -> SignedIn | Response:
        key = _hash(token)
        known = self._bearers.get(key)
        if known is not None and self._clock() < known[1]:
            return SignedIn(known[0], leaves=False, _rights=self._rights)
        person_or_response = await self.tried(request, token)
        if isinstance(person_or_response, Response):
            return person_or_response
        if person_or_response is None:
            self._bearers.pop(key, None)
            text = "The API server does not accept the token in the Authorization header. Get a new token from the proxy that sends it.\n"
            return PlainTextResponse(text, 401, {"WWW-Authenticate": "Bearer"})
        person, until = person_or_response, expiry(token)
        self._bearers[key] = person, self._clock() + (AGAIN if until is None else max(0.0, min(AGAIN, until - time.time())))
        while len(self._bearers) > MOST_BEARERS:
            self._bearers.popitem(last=False)
        return SignedIn(person, leaves=False, _rights=self._rights)

    def _to_login(self, request: Request) -> Response:
        to = f"{LOGIN}?{urlencode({'next': asked_page(request, self.paths)})}"
        if request.headers.get("hx-request") == "true":  # else a part of the page would be replaced by the whole login page
            return Response(status_code=401, headers={"HX-Redirect": to})
        return RedirectResponse(to, 303)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _remember(known: OrderedDict[bytes, float], key: bytes, until: float) -> None:
    known[key] = until
    known.move_to_end(key)
    while len(known) > MOST_REMEMBERED:
        known.popitem(last=False)


def bearer(request: Request) -> str | None:
    """Return the token of the header Authorization; None if there is no Bearer."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
