"""Starlette's side: routes whose handler the server may call without a task, and calls answered in a task, by
uvicorn's cycle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from server.http import Answer, Application, Call

if TYPE_CHECKING:
    from server.answers import Answers

OK = b"HTTP/1.1 200 "


class CallRoute(Route):
    """A route for POST to one path.

    ``Protocol`` calls ``application`` directly at the last byte; any other ASGI server uses the endpoint.
    """

    def __init__(self, path: str, application: Application) -> None:
        self.application = application

        async def endpoint(request: Request) -> Response:
            body = await request.body()
            call = Call(b"POST", path.encode(), dict(request.headers.raw), monotonic(), body[: application.room], len(body))
            parked = asyncio.get_running_loop().create_future()
            answer = application.answer(call, lambda _, answer: parked.set_result(answer))
            return response_of(await parked if answer is None else answer)

        super().__init__(path, endpoint, methods=["POST"])


def response_of(answer: Answer) -> Response:
    """Return the answer as a response of Starlette."""
    response = Response(answer.body, answer.status)
    lines = answer.start.split(b"\r\n")[1:-1]
    response.raw_headers += [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]
    if answer.close:
        response.raw_headers.append((b"connection", b"close"))
    return response


def starlette(routes: list[BaseRoute], errors: Mapping[int, Answer]) -> Starlette:
    """Return an application that redirects nothing. ``errors``: the answers where no route matches, by
    status."""

    def handler(answer: Answer) -> object:
        return lambda request, error: response_of(answer)

    handlers = {status: handler(answer) for status, answer in errors.items()}
    app = Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]
    app.router.redirect_slashes = False
    return app


def direct(app: Starlette) -> dict[bytes, Application]:
    """Return the applications that the server calls without a task, by path."""
    return {route.path.encode(): route.application for route in app.routes if isinstance(route, CallRoute)}


class Ending:
    """The transport given to uvicorn's cycle, which ends the connection as every connection here ends."""

    def __init__(self, connection: Answers) -> None:
        self._connection = connection
        self._write = connection.transport.write
        self.is_closing = connection.transport.is_closing
        self._begun = self.good = False
        """``_begun``: its first bytes are written; ``good``: their status is 200."""

    def write(self, data: bytes) -> None:
        if not self._begun:
            self._begun, self.good = True, data.startswith(OK)
        self._write(data)

    def close(self) -> None:
        if self._connection.is_open:
            self._connection.end()


def cycle(call: Call, connection: Answers, answered: Callable[[bool], None], *, keep_alive: bool) -> RequestResponseCycle:
    """Return a cycle for ``run_asgi``; ``answered`` is called with whether the status was 200.

    The path is not decoded: none of our pages has a percent sign in its name. There is no body: no page reads
    one.
    """
    scope: Any = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": connection.server,
        "client": connection.client,
        "scheme": connection.scheme,
        "method": call.method.decode("ascii"),
        "root_path": "",
        "path": call.path.decode("latin-1"),
        "raw_path": call.path,
        "query_string": b"",
        "headers": list(call.headers.items()),
        "state": {},
    }
    ending = Ending(connection)
    made = RequestResponseCycle(
        scope=scope,
        transport=ending,  # type: ignore[arg-type]
        flow=connection.flow,
        logger=logging.getLogger("uvicorn.error"),
        access_logger=logging.getLogger("uvicorn.access"),
        access_log=False,
        default_headers=[],
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=keep_alive,
        on_response=lambda: answered(ending.good),
    )
    made.more_body = False
    made.message_event.set()
    return made
