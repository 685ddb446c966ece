"""Connections to the API server with one set of certificates: kept until those are replaced and the last call on them has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import aiohttp
from yarl import URL

from cluster.access import Loaded
from cluster.connector import Connector

CONNECT = 5.0
"""Seconds for TCP and TLS together: a second is much, and a lost SYN is sent again after one and three"""


class Answer:
    """A response, and until when it may be read. aiohttp's own ``total`` is not used: where its time is up in the very turn of the event
    loop in which the task is cancelled, the cancellation is lost (``TimerContext`` is entered twice and takes back one too many), and
    whoever waits for the task waits for ever."""

    def __init__(self, transport: Transport, response: aiohttp.ClientResponse, ends: float) -> None:
        self._transport = transport
        self._ends = ends
        self.response = response

    async def read(self) -> bytes:
        """What has come; b"" at the end. Raises what aiohttp raises, and TimeoutError."""
        async with asyncio.timeout_at(self._ends):
            return await self.response.content.readany()

    async def done(self) -> None:
        """The connection is kept where the answer was read to its end."""
        if self.response.content.at_eof():
            self.response.release()
        else:
            self.response.close()
        await self._transport.unused()


class Transport:
    """A pool, and how many calls use it."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self._uses = 0
        self._retired = False
        self._connector = Connector(loaded.context)
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "berth"},  # the API server writes it into managedFields
            skip_auto_headers=("Accept-Encoding",),  # compressed lists cost both sides more time than a pod network does
        )

    async def sent(self, method: str, path: str, *, query: str, headers: Mapping[str, str], data: bytes | None, seconds: float) -> Answer:
        """The answer, once its head is there; after ``seconds`` its last byte must have been read. Raises what aiohttp raises, and
        TimeoutError. The caller gives it back by ``done``."""
        self._uses += 1
        ends = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(ends):
                response = await self._session.request(
                    method,
                    URL(f"{self.loaded.server}{path}{f'?{query}' if query else ''}", encoded=True),
                    headers=headers,
                    data=data,
                    allow_redirects=False,  # it would take the token along
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(CONNECT, seconds)),  # total: see Answer
                    proxy=self.loaded.proxy,
                    server_hostname=self.loaded.server_name,
                )
        except BaseException:
            await self.unused()
            raise
        return Answer(self, response, ends)

    async def unused(self) -> None:
        """By one call."""
        self._uses -= 1
        if self._retired and not self._uses:
            await self.close()

    async def retire(self) -> None:
        """Closed as soon as no call uses it."""
        self._retired = True
        if not self._uses:
            await self.close()

    async def close(self) -> None:
        """At once: no connection is left, but for one that is being made."""
        await self._session.close()
        await self._connector.end()
