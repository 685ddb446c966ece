"""Starlette's side: routes whose application the server calls without a task, and pages, each of which is made in a task."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from time import monotonic
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from server.http import Answer, Application, Call, Later, Rejection, start, text_answer
from telemetry import log

_OURS = {b"content-length", b"connection", b"transfer-encoding"}
_BREAKS = re.compile(rb"[\r\n\0]")
FAILED = text_answer(500, "Internal Server Error", close=True)


class CallRoute(Route):
    """A route for POST to one path.

    The server calls ``application`` directly at the last byte; any other ASGI server uses the endpoint.
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


class Pages:
    """Calls that the ASGI application answers: each is parked until its task has the whole answer.

    ``room``: bytes of a body that a page can read. ``most``: bytes of a body beyond which nothing more is read.
    """

    def __init__(self, app: Starlette, room: int, most: int) -> None:
        self.room, self.most = room, most
        self._app = app
        self._too_long = text_answer(413, f"send at most {room >> 10} KiB" if room else "send no body", close=True)
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, call: Call) -> Rejection | None:
        return None

    def answer(self, call: Call, later: Later) -> Answer | None:
        if max(call.size, call.declared) > self.most:
            return self._too_long
        if call.rejection is not None:
            return call.rejection.answer
        task = asyncio.get_running_loop().create_task(self._run(call, later))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return None

    def turned_away(self, call: Call, answer: Answer) -> Answer:
        return answer

    def lost(self, call: Call) -> None:
        """Nothing is counted of pages."""

    async def _run(self, call: Call, later: Later) -> None:
        answered = asyncio.Event()
        requests = [{"type": "http.request", "body": call.body, "more_body": False}]
        head: list[Any] = []
        body = bytearray()

        async def receive() -> Any:
            if not requests:
                await answered.wait()
                return {"type": "http.disconnect"}
            return requests.pop()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                head.append(message)
            elif not answered.is_set():
                body.extend(message.get("body", b""))
                if not message.get("more_body"):
                    answer = _answer(head[0], bytes(body))
                    answered.set()
                    later(call, answer)

        try:
            await self._app(_scope(call), receive, send)
        except Exception as error:  # noqa: BLE001 - a mistake in a page must not hold its connection
            log.write("failed", "error", phase="page", error=log.trace(error))
        if not answered.is_set():
            answered.set()
            later(call, FAILED)


def _scope(call: Call) -> Any:
    """Return the ASGI scope (version 3.0, HTTP 2.3). HEAD is asked as GET: the queue of answers leaves the body out."""
    assert call.peer is not None, "the connection is open"
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": call.peer.server,
        "client": call.peer.client,
        "scheme": call.peer.scheme,
        "method": "GET" if call.method == b"HEAD" else call.method.decode("ascii"),
        "root_path": "",
        "path": unquote(call.path.decode("latin-1")),
        "raw_path": call.path,
        "query_string": call.query,
        "headers": list(call.headers.items()),
        "state": {},
    }


def _answer(head: Any, body: bytes) -> Answer:
    """Return the answer of an ASGI application; its length and its connection are the server's matter.

    Raises ValueError for a header that would end the line: its value may be what a caller sent.
    """
    headers = [(name.lower(), value) for name, value in head["headers"]]
    if any(_BREAKS.search(text) for header in headers for text in header):
        raise ValueError("a header of the answer has a line break")
    lines = [b"%b: %b\r\n" % header for header in headers if header[0] not in _OURS]
    return Answer(start(head["status"], *lines), body, (b"connection", b"close") in headers)
