"""Connections to the API server with one set of certificates, open until the certificates are replaced and
the last call has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import aiohttp
from yarl import URL

from cluster.client.access import LoadedAccess
from cluster.client.connector import Connector

CONNECT = 5.0
"""Timeout in seconds for TCP and TLS together: a second is long, and a lost SYN is sent again after one and
three."""


class HttpResponse:
    """A response with the deadline for reading it.

    aiohttp's own ``total`` timeout is not used: if it expires in the same iteration of the event loop in
    which the task is cancelled, the cancellation is lost (``TimerContext`` is entered twice and takes back
    one too many), and whoever waits for the task waits forever.
    """

    def __init__(self, transport: Transport, response: aiohttp.ClientResponse, ends: float) -> None:
        self._transport = transport
        self._ends = ends
        self.response = response

    async def read(self) -> bytes:
        """Return the bytes that have arrived, b"" at the end. Raises aiohttp's errors, and TimeoutError."""
        async with asyncio.timeout_at(self._ends):
            return await self.response.content.readany()

    async def done(self) -> None:
        """Give the connection back; it is reused if the answer was read to its end, and closed otherwise."""
        if self.response.content.at_eof():
            self.response.release()
        else:
            self.response.close()
        await self._transport.unused()


class Transport:
    """A connection pool that counts the calls that use it."""

    def __init__(self, loaded: LoadedAccess) -> None:
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

    async def sent(
        self, method: str, path: str, *, query: str, headers: Mapping[str, str], data: bytes | None, seconds: float
    ) -> HttpResponse:
        """Send a request and return the answer when its headers have arrived.

        Its last byte must be read within ``seconds``; the caller ends it with ``done``. Raises aiohttp's
        errors, and TimeoutError.
        """
        self._uses += 1
        ends = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(ends):
                response = await self._session.request(
                    method,
                    URL(f"{self.loaded.server}{path}{f'?{query}' if query else ''}", encoded=True),
                    headers=headers,
                    data=data,
                    allow_redirects=False,  # a redirect would be sent the token
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(CONNECT, seconds)),  # total: see Answer
                    proxy=self.loaded.proxy,
                    server_hostname=self.loaded.server_name,
                )
        except BaseException:
            await self.unused()
            raise
        return HttpResponse(self, response, ends)

    async def unused(self) -> None:
        """Count one call less, and close a retired pool after the last one."""
        self._uses -= 1
        if self._retired and not self._uses:
            await self.close()

    async def retire(self) -> None:
        """Close the pool as soon as no call uses it."""
        self._retired = True
        if not self._uses:
            await self.close()

    async def close(self) -> None:
        """Close the pool at once: no connection is left, except one that is being made."""
        await self._session.close()
        await self._connector.end()
