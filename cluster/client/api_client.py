"""Calls to the API server with raw JSON, with credentials that are read again when they have expired.

Of the official client only what reads kubeconfigs is used (``access``), and not its models: 700 of them take 60 MB of memory,
and they drop unknown fields.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlencode

import aiohttp
import orjson

from cluster.client.access import Access
from cluster.client.errors import AccessError, Garbled, Rejected, Reply, ResponseTooLarge, Unreachable
from cluster.client.line_stream import MOST, Lines
from cluster.client.transport import HttpResponse, Transport
from documents import json_depth

__all__ = ["APPLY", "MERGE", "Access", "AccessError", "Client", "Garbled", "Rejected", "Reply", "Unreachable"]
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
"""The content types of patches (RFC 7386, server-side apply)."""
TOKEN_AGAIN = 60.0
"""Seconds after which a pod's token is read again: the kubelet replaces it after 80 % of its lifetime, and
client-go reads it again each minute."""
RENEWED = 1.0
"""Least seconds between two attempts to reload rejected credentials, as exec plugins are slow, or to read a token that could not be
read."""
REASON = 300
"""Most characters of a network error, or of a body that is not JSON, that go into a message."""


class Client:
    """A client of one API server, created by ``connect`` and ended by ``close``; it belongs to one event
    loop."""

    def __init__(self, access: Access, transport: Transport) -> None:
        self._access = access
        self._transport = transport
        self._authorization = transport.loaded.authorization
        self._read_at = self._renewed_at = time.monotonic() - RENEWED
        self._renewing = asyncio.Lock()
        self.access_error = ""
        """The reason why credentials could not be read again; "" if the last attempt worked."""

    @classmethod
    async def connect(cls, access: Access) -> Client:
        """Read address and credentials; the server is not called yet, as it may be down. Raises
        AccessError."""
        return cls(access, Transport(await access.load()))

    @property
    def namespace(self) -> str:
        """The pod's own namespace, or that of the kubeconfig's context; "default" if there is none."""
        return self._transport.loaded.namespace

    @property
    def server(self) -> str:
        return self._transport.loaded.server

    async def close(self) -> None:
        """Close all connections; calls in progress raise Unreachable."""
        await self._transport.close()

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        content: str = "application/json",
        accept: str = "application/json",
        query: Mapping[str, str] = {},
        seconds: float = 10.0,
        etag: str = "",
        most: int = MOST,
    ) -> Reply:
        """Make one call and return the reply, whatever its status.

        ``body``: a value that is encoded as JSON, or bytes that are sent as they are; ``etag``: that of an earlier
        reply, so that the status is 304 while it would be the same; ``most``: the bytes of a body that are read. Raises
        Unreachable, TooLarge, and Garbled for a success whose body is not JSON.
        """
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        headers = {"Accept": accept} | ({"Content-Type": content} if data is not None else {}) | ({"If-None-Match": etag} if etag else {})
        answer = await self._opened(method, path, query, headers, data, seconds)
        try:
            return self._reply(answer.response, await self._whole(answer, most))
        finally:
            await answer.done()

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str], seconds: float, accept: str = "application/json") -> AsyncIterator[Lines]:
        """Open a GET that lasts at most ``seconds`` and yield its lines.

        Raises Rejected for any status but 200, and Unreachable.
        """
        answer = await self._opened("GET", path, query, {"Accept": accept}, None, seconds)

        async def read() -> bytes:
            with self._telling():
                return await answer.read()

        try:
            if answer.response.status != 200:
                raise Rejected(f"GET {path}", self._reply(answer.response, await self._whole(answer)))
            yield Lines(read)
        finally:
            await answer.done()

    async def _opened(
        self, method: str, path: str, query: Mapping[str, str], headers: dict[str, str], data: bytes | None, seconds: float
    ) -> HttpResponse:
        """Send a request; after a 401, reload the credentials and send it again if they have changed."""
        self._look_at_token()
        while True:
            transport, authorization = self._transport, self._authorization
            sent = headers | ({"Authorization": authorization} if authorization else {})
            try:
                with self._telling():
                    answer = await transport.sent(method, path, query=urlencode(query), headers=sent, data=data, seconds=seconds)
            except Unreachable as error:
                if isinstance(error.__cause__, aiohttp.ClientSSLError):
                    await self._renewed(transport, authorization)  # for the next call
                raise
            if answer.response.status != 401 or not await self._renewed(transport, authorization):
                return answer
            await answer.done()

    async def _whole(self, answer: HttpResponse, most: int = MOST) -> bytes:
        parts: list[bytes] = []
        length = 0
        while True:
            with self._telling():
                part = await answer.read()
            if not part:
                return b"".join(parts)
            parts.append(part)
            length += len(part)
            if length > most:
                raise ResponseTooLarge(f"{self.server} answered with more than {most >> 20} MiB")

    def _reply(self, response: aiohttp.ClientResponse, text: bytes) -> Reply:
        try:
            body = json_depth.loads(text) if text else None
        except ValueError as error:
            if response.status < 300:
                shown = text[:REASON].decode(errors="replace")
                raise Garbled(f"{self.server} answered {response.status} with a body that is not JSON ({error}): {shown}") from error
            body = text.decode(errors="replace")
        headers = response.headers
        after, date, etag = _seconds(headers.get("Retry-After")), headers.get("Date", ""), headers.get("ETag", "")
        return Reply(response.status, body, after, date, etag, len(text))

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise Unreachable(f"the API server at {self.server} does not answer in time") from error
        except (aiohttp.ClientError, OSError, ValueError, RuntimeError) as error:  # aiohttp: RuntimeError of a closed session
            reason = str(error)[:REASON] or type(error).__name__
            raise Unreachable(f"the API server at {self.server} can't be reached: {reason}") from error

    def _look_at_token(self) -> None:
        now = time.monotonic()
        if self._access.in_cluster and now - self._read_at >= TOKEN_AGAIN:
            try:
                self._authorization = self._access.token()
                self._read_at, self.access_error = now, ""
            except ValueError as error:
                self._read_at = now - TOKEN_AGAIN + RENEWED
                self.access_error = f"the token can't be read again, and the old one is used: {error}"

    async def _renewed(self, transport: Transport, authorization: str | None) -> bool:
        """Reload the credentials, at most once in RENEWED seconds, and return whether they differ from the
        given ones."""
        async with self._renewing:
            if (self._transport, self._authorization) == (transport, authorization) and time.monotonic() - self._renewed_at >= RENEWED:
                self._renewed_at = self._read_at = time.monotonic()
                await self._load()
            return (self._transport, self._authorization) != (transport, authorization)

    async def _load(self) -> None:
        try:
            loaded = await self._access.load()
        except AccessError as error:
            self.access_error = str(error)
            return
        self.access_error, self._authorization = "", loaded.authorization
        if loaded.identity != self._transport.loaded.identity:
            old, self._transport = self._transport, Transport(loaded)
            await old.retire()


def _seconds(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header; None for a date, which Kubernetes never sends."""
    return float(header) if header is not None and header.strip().isdecimal() and len(header) < 10 else None
