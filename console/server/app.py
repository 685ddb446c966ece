"""The application: who asks, what they may see, the screen, its HTML, and the headers of every answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from jinja2 import Environment
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as RequestScope

from analysis.world.world import World
from cluster.client.errors import Unreachable
from console.server.page import Near, NotShown, Screen, Visit
from console.server.query import Query, QueryError, form
from console.server.rendering import STATIC, VERSION, environment
from console.world.scope import NOTHING, ListedKind, Scope
from console.world.view import View
from documents.printable import cut
from telemetry import log

STATIC_PATH = f"/static/{VERSION}"
FIRST = 20.0
"""Seconds that the first page waits for the first reading of a cluster."""
IN_FORM = {"HX-Retarget": "#changed", "HX-Reswap": "innerHTML", "HX-Reselect": "p"}
"""Where htmx puts what is wrong with a form that was sent: under it, whatever it would have replaced (https://htmx.org/reference/#response_headers)."""


class WorldSource(Protocol):
    """What worlds come from."""

    @property
    def world(self) -> World | None:
        """The newest; None before the first."""

    @property
    def stale(self) -> str:
        """Why it could not be read since; "" if it could."""

    @property
    def near(self) -> Near | None:
        """Reads one object of the cluster afresh; None where there is none."""

    async def first(self) -> None:
        """Wait for the first world, or for the reason why there is none."""


def application(
    source: WorldSource, gate: Gate, screens: Sequence[Screen], entrance: Sequence[Route] = (), origins: Collection[str] = ()
) -> Starlette:
    """Return the application. ``entrance``: addresses for those whom the gate has not let in yet; ``origins``: where forms may come
    from, besides the host that is asked."""
    pages = ConsolePages(source, gate, environment(), origins)
    routes = [Route(one.path, pages.endpoint(one), methods=["GET", "POST"] if one.form else ["GET"]) for one in screens]
    files = Mount(STATIC_PATH, StaticFiles(directory=STATIC))
    app = Starlette(
        routes=[Route("/livez", _alive), Route("/readyz", pages.ready), *entrance, files, *routes],
        exception_handlers={HTTPException: pages.not_found, Exception: pages.failed},
    )
    app.router.redirect_slashes = False
    app.add_middleware(Headers)
    return app


async def _alive(request: Request) -> Response:
    return PlainTextResponse("alive\n")


class ConsolePages:
    """Answers with pages."""

    def __init__(self, source: WorldSource, gate: Gate, templates: Environment, origins: Collection[str] = ()) -> None:
        self._source = source
        self._gate = gate
        self._templates = templates
        self._origins = origins

    def endpoint(self, screen: Screen) -> Callable[[Request], object]:
        """Return the handler of one screen."""

        async def answered(request: Request) -> Response:
            visitor: Visitor | Response | None
            try:
                visitor = await self._gate.admit(request)
                if isinstance(visitor, Response):
                    return self._not_admitted(visitor, request)
                answer = await self._of(screen, request, visitor)
            except QueryError as error:
                return self._error(400, "Invalid request", f"{error}.", request=request)
            except Unreachable as error:
                answer = self._error(503, "The API server does not answer", f"{error}. Reload the page once it does.", request=request)
                visitor = None
            if visitor is not None and visitor.name and screen.section:
                log.write("page", path=screen.path, user=cut(visitor.name), status=answer.status_code)
            return answer

        return answered

    async def ready(self, request: Request) -> Response:
        """Say whether something was read."""
        if self._source.world is None:
            return PlainTextResponse("not ready: the cluster has not been read yet\n", 503)
        return PlainTextResponse("ready\n")

    async def _of(self, screen: Screen, request: Request, visitor: Visitor) -> Response:
        if self._source.world is None:
            try:
                async with asyncio.timeout(FIRST):
                    await self._source.first()
            except TimeoutError:
                pass
        world = self._source.world
        if world is None:
            reason = self._source.stale or "The console is reading the cluster for the first time"
            return self._error(503, "No data yet", f"{reason}. Reload the page in a few seconds.", visitor, request)
        try:
            query = Query.of(await form(request, self._origins) if request.method == "POST" else request.url.query)
            view = View(world=world, scope=await visitor.scope(world, query.namespaces()), stale=self._source.stale)
            visit = Visit(view=view, query=query, may_list=visitor.may_list, near=self._source.near)
            if screen.gather is not None:
                visit = replace(visit, gathered=await screen.gather(visit))
            return await run_in_threadpool(self._rendered, screen, visit, visitor)
        except QueryError as error:
            return self._error(400, "Invalid request", f"{error}.", visitor, request)
        except NotShown as error:
            return self._error(404, "Not found", str(error), visitor, request)

    def _rendered(self, screen: Screen, visit: Visit, visitor: Visitor) -> Response:
        page = screen.show(visit)
        view = visit.view
        frame = {"section": screen.section, "title": page.title, "view": view, "visitor": visitor, "query": visit.query}
        return HTMLResponse(self._templates.get_template(page.template).render(**frame, **page.values), page.status)

    def _error(self, status: int, title: str, text: str, visitor: Visitor | None = None, request: Request | None = None) -> Response:
        """Return a page that says what is wrong; where a part of a page was asked for (htmx tells it), a line for that part."""
        part = request is not None and _wants_part(request)
        template = self._templates.get_template("error_part.html" if part else "error.html")
        world = self._source.world
        view = None if world is None or visitor is None else View(world=world, scope=NOTHING, stale=self._source.stale)
        frame = {"section": "", "title": title, "view": view, "visitor": visitor, "query": Query({})}
        headers = {"Retry-After": "5"} if status == 503 else {}
        if part and request is not None and request.method == "POST":
            headers |= IN_FORM
        return HTMLResponse(template.render(**frame, text=text, status=status), status, headers)

    def _not_admitted(self, answer: Response, request: Request) -> Response:
        """Return the answer to somebody who is not let in; its words in a line where a part of a page was asked for."""
        if not _wants_part(request) or not isinstance(answer, PlainTextResponse):
            return answer
        page = self._error(answer.status_code, "Request rejected", bytes(answer.body).decode(), request=request)
        page.headers.update({name: value for name, value in answer.headers.items() if name in ("retry-after", "www-authenticate")})
        return page

    async def not_found(self, request: Request, error: Exception) -> Response:
        """Answer where there is no page."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        return self._error(status, "Page not found", "Check the address, or go to the start page.", request=request)

    async def failed(self, request: Request, error: Exception) -> Response:
        """Answer for a mistake of Berth: nothing of it is shown, the log has it."""
        log.write("failed", "error", phase="console", path=cut(request.url.path), error=log.trace(error))
        text = "Look in the console's log for event=failed, phase=console."
        answer = self._error(500, "Internal error", text, request=request)
        answer.headers.update({**HEADERS, "Cache-Control": "no-store"})  # Starlette sends it past the middleware that has them
        return answer


def _wants_part(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


class Visitor(Protocol):
    """Somebody who may see pages."""

    @property
    def name(self) -> str:
        """As the API server knows them; "" on a laptop."""

    @property
    def leaves(self) -> bool:
        """True if they can sign out."""

    async def scope(self, world: World, named: Collection[str] = ()) -> Scope:
        """Return what they may list. Raises Unreachable if the API server does not say."""

    async def may_list(self, kinds: Iterable[ListedKind], namespace: str) -> Collection[ListedKind]:
        """Return those of the kinds that they may list in a namespace. Raises Unreachable if the API server does not say."""


class Gate(Protocol):
    """Tells who asks."""

    async def admit(self, request: Request) -> Visitor | Response:
        """Return who asks, or the answer that they get in place of a page. Raises Unreachable if the API server does not say."""


POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Headers:
    """Adds them, and ``Cache-Control``: a browser may keep static files for ever, as their addresses change with what they hold."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: RequestScope, receive: Receive, send: Send) -> None:
        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                is_static = message["status"] == 200 and scope["path"].startswith(f"{STATIC_PATH}/")
                headers["Cache-Control"] = "public, max-age=31536000, immutable" if is_static else "no-store"
            await send(message)

        await self._app(scope, receive, headed)
