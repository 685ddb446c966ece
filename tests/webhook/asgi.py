"""Twenty lines that call an ASGI application as a server would."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.types import Message

JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def call(app: Starlette, path: str, chunks: Iterable[bytes] | None, headers: Mapping[str, str] = JSON, method: str = "POST") -> Answer:
    """One request whose body arrives in ``chunks``; None: the caller hangs up first."""
    waiting = iter(chunks or ())
    sent: list[Message] = []

    async def receive() -> Message:
        if chunks is None:
            return {"type": "http.disconnect"}
        chunk = next(waiting, None)
        return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": raw,
        "root_path": "",
    }
    asyncio.run(app(scope, receive, send))
    got = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(status=sent[0]["status"], headers=got, body=b"".join(message.get("body", b"") for message in sent[1:]))
