"""The pages of somebody who is not signed in, and the way out."""

from __future__ import annotations

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from cluster.client.errors import Unreachable
from console.access.hosts import local
from console.access.people import expiry, is_token
from console.access.sign_in import COOKIE, LOGIN, LOGOUT, SignIn
from console.server.query import Query, QueryError, form
from documents.printable import cut
from telemetry import log

MOST_FORM = 64 * 2**10
"""Bytes of the form: a token, each character of it encoded by three, and an address."""
NOBODY = "The API server does not accept this token. It may be expired, incomplete, or from another cluster."
ENDED = "This token has expired. Get a new one."


class Entrance:
    """The pages."""

    def __init__(self, gate: SignIn, templates: Environment) -> None:
        self._gate = gate
        self._templates = templates

    def routes(self) -> list[Route]:
        """Return the addresses."""
        return [
            Route(LOGIN, self.login, methods=["GET"]),
            Route(LOGIN, self.sign_in, methods=["POST"]),
            Route(LOGOUT, self.sign_out, methods=["POST"]),
        ]

    async def login(self, request: Request) -> Response:
        """Show the form; to somebody who is signed in, the page that they came for."""
        if (denial := self._gate.hosts.denial(request)) is not None:
            return denial
        try:
            query = Query.of(request.url.query)
        except QueryError as error:
            return self._form("/", str(error), 400)
        back = local(query.text("next"), self._gate.paths)
        try:
            if await self._gate.of_session(request) is not None:
                return RedirectResponse(back, 303)
        except Unreachable as error:
            return self._form(back, f"The API server does not answer. {error}.", 503)
        return self._form(back, "You are signed out." if query.text("out") else "")

    async def sign_in(self, request: Request) -> Response:
        """Exchange a token for a session under a new id; one that the browser had before ends."""
        if (denial := self._gate.hosts.denial(request)) is not None:
            return denial
        try:
            fields = Query.of(await form(request, self._gate.hosts.origins, MOST_FORM))
        except QueryError as error:
            return self._form("/", f"{error}.", 400)
        back, token = local(fields.text("next"), self._gate.paths), fields.text("token").strip()
        if not is_token(token):
            return self._form(back, "This is not a token. Paste one line without spaces.", 400)
        try:
            found = await self._gate.tried(request, token)
        except Unreachable as error:
            return self._form(back, f"The API server does not answer. {error}. Try again once it does.", 503)
        if isinstance(found, Response):
            return found
        if found is None:
            return self._form(back, NOBODY, 401)
        self._gate.sessions.end(request.cookies.get(COOKIE, ""))
        id_, seconds = self._gate.sessions.open(token, found)
        log.write("login", user=cut(found.name), seconds=seconds, tokenEnds=expiry(token) is not None)
        answer = RedirectResponse(back, 303)
        answer.set_cookie(COOKIE, id_, max_age=seconds, path="/", secure=True, httponly=True, samesite="lax")
        return answer

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        if (denial := self._gate.hosts.denial(request)) is not None:
            return denial
        try:
            await form(request, self._gate.hosts.origins, MOST_FORM)
        except QueryError as error:
            return self._form("/", f"{error}.", 400)
        self._gate.sessions.end(request.cookies.get(COOKIE, ""))
        answer = RedirectResponse(f"{LOGIN}?out=1", 303)
        answer.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="lax")
        return answer

    def _form(self, back: str, problem: str, status: int = 200) -> Response:
        frame = {"section": "", "title": "Sign in", "view": None, "visitor": None, "query": Query({})}
        html = self._templates.get_template("login.html").render(**frame, back=back, problem=problem)
        return HTMLResponse(html, status, {"Retry-After": "5"} if status == 503 else None)
