"""Pages as somebody gets them: the whole application, asked in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from analysis.world.world import World
from console.screens import SCREENS
from console.serve import Fixed
from console.server.app import WorldSource, application
from console.world.scope import EVERYTHING, ListedKind, Scope


@dataclass(frozen=True)
class Somebody:
    """A visitor with these rights; also the gate that lets them in."""

    rights: Scope = EVERYTHING
    name: str = ""
    leaves: bool = False
    closed: Collection[ListedKind] = ()
    """What they may list nowhere, of the kinds that are asked for one by one"""

    async def scope(self, world: World, named: Collection[str] = ()) -> Scope:
        return self.rights

    async def may_list(self, kinds: Iterable[ListedKind], namespace: str) -> Collection[ListedKind]:
        return [kind for kind in kinds if kind not in self.closed]

    async def admit(self, request: Request) -> Somebody | Response:
        return self


@dataclass(frozen=True)
class Answered:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def asked(
    source: World | WorldSource, path: str, scope: Scope = EVERYTHING, form: Mapping[str, str] | None = None, **fields: str
) -> Answered:
    """The answer to a GET with these fields, or to a form that is sent."""
    app = application(Fixed(source) if isinstance(source, World) else source, Somebody(scope), SCREENS)
    return asyncio.run(answer(app, path, form=form, fields=fields))


async def answer(
    app: Any, path: str, *, form: Mapping[str, str] | None = None, fields: Mapping[str, str] = {}, headers: Mapping[str, str] = {}
) -> Answered:
    """Ask an ASGI application."""
    body = b"" if form is None else urlencode(form).encode()
    given = {"host": "127.0.0.1:8480", **({} if form is None else {"content-type": "application/x-www-form-urlencoded"}), **headers}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET" if form is None else "POST", "scheme": "http",
        "path": path, "raw_path": quote(path).encode(), "root_path": "", "query_string": urlencode(fields).encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()], "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8480), "state": {},
    }  # fmt: skip
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answered(start["status"], found, b"".join(one.get("body", b"") for one in sent[1:]))
